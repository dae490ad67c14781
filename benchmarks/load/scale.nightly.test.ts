import { expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { descriptorsFor, raiseDescriptors } from "./processes.ts";
import { measureScale } from "./scale.ts";

test(
  "20,000 streams over three routers, a token each 5 s for ten minutes: none is lost",
  { ...needs("cc"), timeout: 3_600_000 },
  async () => {
    // Some hosts allow a process 20,000 descriptors at most, even one of root's.
    const streams = Math.min(20_000, raiseDescriptors() - descriptorsFor(0));
    expect(streams, "too few descriptors (ulimit -n)").toBeGreaterThanOrEqual(19_500);
    const wish = { streams, minutes: 10, routers: 3, gapSeconds: 5 };
    const { measured, memory } = await measureScale(wish, console.log);
    const { endings, gapUs, delayUs } = measured.result;
    console.log(
      JSON.stringify({ gapUs, delayUs, memory }, (key, value: unknown) => (key === "buckets" ? undefined : value)),
    );
    const lost = { refused: 0, cut: 0, undone: 0, miscounted: 0, told: 0, unconnected: 0, stalled: 0 };
    expect(endings).toEqual({ whole: streams, ...lost });
  },
);
