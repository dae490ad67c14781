import { expect, test } from "vitest";
import { barChart, delayChart } from "./charts.ts";

const spread = (median: number) => ({ median, min: median * 0.9, max: median * 1.2, rounds: 5 });

test("bars are sorted by value, and Weiche's bar has its own colour and parts", () => {
  const svg = barChart("CPU <per> chunk", "note", [
    { label: "portkey", isOurs: false, spread: spread(80) },
    {
      ...{ label: "weiche", isOurs: true, spread: spread(50) },
      parts: [
        { label: "router", value: 20 },
        { label: "agent", value: 30 },
      ],
    },
  ]);
  expect(svg.indexOf(">weiche<")).toBeLessThan(svg.indexOf(">portkey<"));
  expect(svg.match(/<rect class="ours/g)).toHaveLength(2);
  expect(svg.match(/<rect class="other/g)).toHaveLength(1);
  expect(svg).toContain("CPU &lt;per> chunk");
  expect(svg).toContain("prefers-color-scheme: dark");
  expect(svg).not.toMatch(/NaN|undefined|Infinity/);
});

test("each program has a line that rises to 100 %", () => {
  const svg = delayChart("Delay", "note", [
    {
      label: "nginx",
      buckets: [
        [10, 5],
        [1_000, 5],
      ],
    },
    { label: "nothing", buckets: [] },
  ]);
  expect(svg).toContain('d="M60.0,182.0L264.0,44.0"'); // half of the chunks after 10 µs, all after 1 ms
  expect(svg).not.toMatch(/NaN|undefined|Infinity/);
});
