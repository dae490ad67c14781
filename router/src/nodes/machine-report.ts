/**
 * The machine as its agent reports it. Words come from hardware and kernels, and its parts are as many as the host has:
 * both are cut to what a person can look at, so that no agent fills the memory of a router.
 */
import type { Machine, MachineReading } from "@weiche/proto/weiche/node/v1/node_control.ts";

const wordMax = 200;
const partsMax = 256;

/** The same with strings and lists that are not too long. */
export function readMachine<Said extends Machine | MachineReading>(said: Said): Said {
  const cut = (each: unknown): unknown => {
    if (typeof each === "string") return each.slice(0, wordMax);
    if (Array.isArray(each)) return each.slice(0, partsMax).map(cut);
    if (typeof each !== "object" || each === null) return each;
    return Object.fromEntries(Object.entries(each).map(([key, part]) => [key, cut(part)]));
  };
  return cut(said) as Said;
}
