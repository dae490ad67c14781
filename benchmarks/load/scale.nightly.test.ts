import { expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { descriptorsFor, raiseDescriptors } from "../../e2e/cluster/processes.ts";
import { measureScale } from "./scale.ts";

test(
  "no stream of 20,000 over three routers is lost in ten minutes with a token each 5 s",
  { ...needs("cc"), timeout: 3_600_000 },
  async () => {
    // Some hosts allow a process at most 20,000 descriptors, even as root.
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
