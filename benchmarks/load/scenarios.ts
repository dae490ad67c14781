/** The scenarios: which load, on which programs, and what they say something about. */
import type { LoadWish } from "./measure.ts";

export interface Scenario {
  readonly name: string;
  readonly what: string;
  readonly load: LoadWish;
  /** Part of `--quick`. */
  readonly quick?: true;
}

/** An answer of 8 tokens for JSON, of 5 s for paced streams; half a second of ramp sets the streams apart in time. */
const json = { tokens: 8, warmup: 0.7, seconds: 3 };
const paced = { stream: true, ramp: 0.5, warmup: 1, seconds: 4 } as const;

export const scenarios: readonly Scenario[] = [
  {
    ...{ name: "json-1", what: "JSON answers, one connection, one request after the other" },
    load: { ...json, connections: 1 },
  },
  {
    ...{ name: "json-64", what: "JSON answers, 64 connections, as fast as they go", quick: true },
    load: { ...json, connections: 64 },
  },
  {
    ...{ name: "stream-64x10", what: "64 streams, a token each 10 ms: 6,400 chunks a second", quick: true },
    load: { ...paced, connections: 64, itl: 10_000, tokens: 500 },
  },
  {
    ...{ name: "stream-256x20", what: "256 streams, a token each 20 ms: 12,800 chunks a second" },
    load: { ...paced, connections: 256, itl: 20_000, tokens: 250 },
  },
  {
    ...{ name: "flood", what: "16 streams of an engine that is faster than everything behind it" },
    load: { stream: true, connections: 16, tokens: 2_000, warmup: 1, seconds: 3 },
  },
  {
    ...{ name: "first-byte", what: "the first byte of a stream, one client, nothing else", quick: true },
    load: { stream: true, connections: 1, tokens: 1, warmup: 0.7, seconds: 3 },
  },
  {
    ...{ name: "body-20mb", what: "requests of 19.9 MB, two at a time" },
    load: { connections: 2, tokens: 1, body: 19_900_000, warmup: 1, seconds: 5 },
  },
];

/** `--quick`: shorter, and only what the first goals are about. */
export function quickLoad(load: LoadWish): LoadWish {
  return { ...load, seconds: 1.5, warmup: Math.min(load.warmup ?? 0, 0.5), ramp: Math.min(load.ramp ?? 0, 0.3) };
}
