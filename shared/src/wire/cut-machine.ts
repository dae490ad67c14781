/**
 * A machine as its agent reports it. Words come from hardware and kernels, and its parts are as many as the host has. The
 * agent cuts both to what a person can look at and the wire takes; the router cuts what older agents send.
 */
import { machinePartsMax, machineWordMax } from "./link-bounds.ts";

/** Returns the same with strings and lists that are not too long. */
export function cutMachine<Said extends object>(said: Said): Said {
  const cut = (each: unknown): unknown => {
    if (typeof each === "string") return each.slice(0, machineWordMax);
    if (Array.isArray(each)) return each.slice(0, machinePartsMax).map(cut);
    if (typeof each !== "object" || each === null) return each;
    return Object.fromEntries(Object.entries(each).map(([key, part]) => [key, cut(part)]));
  };
  return cut(said) as Said;
}
