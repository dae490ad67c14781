/** Draws the charts of benchmarks as SVG. Pure. */
import {
  colourOf,
  curve,
  escaped,
  label,
  level,
  mark,
  svgChart,
  type Plot,
} from "@weiche/router/src/simulate/answer/svg.ts";
import { short, type Buckets, type Spread } from "./statistics.ts";

export interface Bar {
  readonly label: string;
  readonly isOurs: boolean;
  readonly spread: Spread;
  /** The parts of the median, from the left. If undefined, the bar has one part. */
  readonly parts?: readonly { readonly label: string; readonly value: number }[];
}

const width = 720;
const labelWidth = 150;
const barHeight = 22;
const barGap = 8;
const top = 44;
const light =
  ".ours{fill:#0969da}.ours1{fill:#54aeff}.ours2{fill:#80ccff}.ours3{fill:#b6e3ff}.other{fill:#8c959f}.whisker{stroke:#1f2328}";
const dark =
  ".ours{fill:#4493f8}.ours1{fill:#1f6feb}.ours2{fill:#1158c7}.ours3{fill:#0d419d}.other{fill:#656c76}.whisker{stroke:#e6edf3}";

/** Draws bars in ascending order, each with a whisker from minimum to maximum. */
export function barChart(title: string, note: string, bars: readonly Bar[]): string {
  const sorted = bars.toSorted((a, b) => a.spread.median - b.spread.median);
  const most = Math.max(...sorted.map(({ spread }) => spread.max), Number.MIN_VALUE);
  const scale = (value: number) => (value / most) * (width - labelWidth - 90);
  const rows = sorted.map((bar, n) => barRow(bar, top + n * (barHeight + barGap), scale));
  const height = top + sorted.length * (barHeight + barGap) + 8;
  return svgChart({ title, note, width, height, light, dark }, rows);
}

function barRow({ label: name, isOurs, spread, parts }: Bar, y: number, scale: (value: number) => number): string {
  const middle = y + barHeight / 2;
  let x = labelWidth;
  const rects = (parts ?? [{ label: name, value: spread.median }]).map((part, n) => {
    const kind = isOurs ? `ours${n === 0 ? "" : Math.min(n, 3)}` : "other";
    const rect = `<rect class="${kind}" x="${x.toFixed(1)}" y="${y}" width="${scale(part.value).toFixed(1)}" height="${barHeight}"><title>${escaped(`${part.label}: ${short(part.value)}`)}</title></rect>`;
    x += scale(part.value);
    return rect;
  });
  const [from, to] = [spread.min, spread.max].map((value) => labelWidth + scale(value)) as [number, number];
  const whisker = `<line class="whisker" x1="${from.toFixed(1)}" x2="${to.toFixed(1)}" y1="${middle}" y2="${middle}"/>`;
  const value = label({ x: to + 8, y: middle + 4 }, short(spread.median), { kind: "text" });
  const shown = label({ x: labelWidth - 8, y: middle + 4 }, name, { kind: "text", anchor: "end" });
  return [shown, ...rects, whisker, value].join("");
}

/** Draws a line per program with the share of chunks that arrived within a time, on a logarithmic axis. */
export function delayChart(
  title: string,
  note: string,
  lines: readonly { readonly label: string; readonly buckets: Buckets }[],
): string {
  const plot: Plot = { left: 60, right: width - 150, top, bottom: 320 };
  const [fromUs, toUs] = [10, 1_000_000];
  const x = (us: number) =>
    plot.left +
    (Math.log(Math.min(Math.max(us, fromUs), toUs) / fromUs) / Math.log(toUs / fromUs)) * (plot.right - plot.left);
  const y = (share: number) => plot.bottom - share * (plot.bottom - plot.top);
  const axes = [10, 100, 1_000, 10_000, 100_000, 1_000_000].map((us) => mark(plot, x(us), timeText(us)));
  const levels = [0, 0.5, 0.9, 1].map((share) => level(plot, y(share), `${share * 100} %`));
  const curves = lines.map((line, n) => {
    const labelY = top + 14 + n * 20;
    const [from, to] = [plot.right + 14, plot.right + 34];
    const key = `<line class="line ${colourOf("l", n)}" x1="${from}" x2="${to}" y1="${labelY - 4}" y2="${labelY - 4}"/>`;
    const name = label({ x: to + 6, y: labelY }, line.label, { kind: "text" });
    return `${curve(n, pointsOf(line.buckets, x, y), line.label)}${key}${name}`;
  });
  return svgChart({ title, note, width, height: 350 }, [...axes, ...levels, ...curves]);
}

function timeText(us: number): string {
  return us < 1_000 ? `${us} µs` : us < 1_000_000 ? `${us / 1_000} ms` : "1 s";
}

function pointsOf(buckets: Buckets, x: (us: number) => number, y: (share: number) => number) {
  const total = buckets.reduce((sum, [, count]) => sum + count, 0);
  let seen = 0;
  return buckets.map(([from, count]) => {
    seen += count;
    return { x: x(from), y: y(seen / total) };
  });
}
