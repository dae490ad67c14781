/** Joins loads to one in the order of time. */
import type { Load } from "../load.ts";

/** Requests of the same time come in the order of the loads. */
export function merged(loads: readonly Load[]): Load {
  return {
    *[Symbol.iterator]() {
      const streams = loads.map((load) => load[Symbol.iterator]());
      const next = streams.map((stream) => stream.next().value);
      // Numbers in one array, because this loop runs for each request.
      const times = Float64Array.from(next, (request) => request?.atMs ?? Infinity);
      for (;;) {
        let first = 0;
        for (let index = 1; index < times.length; index++) if (times[index]! < times[first]!) first = index;
        const request = next[first];
        if (request === undefined) return;
        yield request;
        next[first] = streams[first]!.next().value;
        times[first] = next[first]?.atMs ?? Infinity;
      }
    },
  };
}
