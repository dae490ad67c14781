/** The scenarios with their loads and programs. */
import type { LoadWish } from "./measure.ts";

export interface Scenario {
  readonly name: string;
  readonly what: string;
  readonly load: LoadWish;
  /** Whether `--quick` includes the scenario. */
  readonly quick?: true;
}

/** JSON answers have 8 tokens, paced streams last 5 s. A ramp of half a second distributes the streams in time. */
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

/** Shortens a load for `--quick`. */
export function quickLoad(load: LoadWish): LoadWish {
  return { ...load, seconds: 1.5, warmup: Math.min(load.warmup ?? 0, 0.5), ramp: Math.min(load.ramp ?? 0, 0.3) };
}
