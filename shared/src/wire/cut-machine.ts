/**
 * Limits the length of strings and lists in a machine report, which come from hardware and kernels, so that no agent
 * can fill the router's memory. The agent cuts its report, and the router cuts reports of older agents.
 */
import { machinePartsMax, machineWordMax } from "./link-bounds.ts";

/** Returns a copy with shortened strings and lists. */
export function cutMachine<Said extends object>(said: Said): Said {
  const cut = (each: unknown): unknown => {
    if (typeof each === "string") return each.slice(0, machineWordMax);
    if (Array.isArray(each)) return each.slice(0, machinePartsMax).map(cut);
    if (typeof each !== "object" || each === null) return each;
    return Object.fromEntries(Object.entries(each).map(([key, part]) => [key, cut(part)]));
  };
  return cut(said) as Said;
}
