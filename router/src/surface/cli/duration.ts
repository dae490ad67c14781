/** Reads durations in options. */
import { InvalidArgumentError } from "commander";
import { readDurationMs } from "@weiche/shared/program/duration.ts";

/** Returns the milliseconds of a text such as `30s`, `10m` or `1h`. */
export function duration(text: string): number {
  const ms = readDurationMs(text);
  if (ms === undefined) throw new InvalidArgumentError("A duration looks like 30s, 10m or 1h.");
  return ms;
}
