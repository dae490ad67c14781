/** Draws SVG charts that are readable on light and dark pages. Pure. */
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
const style = `<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328 } .title { font-weight: 600; font-size: 15px } .note { fill: #59636e; font-size: 12px }
.ours { fill: #0969da } .ours1 { fill: #54aeff } .ours2 { fill: #80ccff } .ours3 { fill: #b6e3ff } .other { fill: #8c959f }
.whisker { stroke: #1f2328; stroke-width: 1 } .axis { stroke: #d1d9e0; stroke-width: 1 }
.l0 { stroke: #0969da } .l1 { stroke: #57606a } .l2 { stroke: #bc4c00 } .l3 { stroke: #1a7f37 } .l4 { stroke: #8250df } .l5 { stroke: #bf3989 } .l6 { stroke: #9a6700 }
.line { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .note { fill: #9198a1 } .ours { fill: #4493f8 } .ours1 { fill: #1f6feb } .ours2 { fill: #1158c7 } .ours3 { fill: #0d419d } .other { fill: #656c76 }
.whisker { stroke: #e6edf3 } .axis { stroke: #3d444d }
.l0 { stroke: #4493f8 } .l1 { stroke: #9198a1 } .l2 { stroke: #f0883e } .l3 { stroke: #3fb950 } .l4 { stroke: #ab7df8 } .l5 { stroke: #db61a2 } .l6 { stroke: #d29922 }
}
</style>`;

/** Draws bars in ascending order, each with a whisker from minimum to maximum. */
export function barChart(title: string, note: string, bars: readonly Bar[]): string {
  const sorted = bars.toSorted((a, b) => a.spread.median - b.spread.median);
  const most = Math.max(...sorted.map(({ spread }) => spread.max), Number.MIN_VALUE);
  const scale = (value: number) => (value / most) * (width - labelWidth - 90);
  const rows = sorted.map((bar, n) => barRow(bar, top + n * (barHeight + barGap), scale));
  const height = top + sorted.length * (barHeight + barGap) + 8;
  return svg(title, note, height, rows.join("\n"));
}

function barRow({ label, isOurs, spread, parts }: Bar, y: number, scale: (value: number) => number): string {
  const middle = y + barHeight / 2;
  let x = labelWidth;
  const rects = (parts ?? [{ label, value: spread.median }]).map((part, n) => {
    const kind = isOurs ? `ours${n === 0 ? "" : Math.min(n, 3)}` : "other";
    const rect = `<rect class="${kind}" x="${x.toFixed(1)}" y="${y}" width="${scale(part.value).toFixed(1)}" height="${barHeight}"><title>${escape(`${part.label}: ${short(part.value)}`)}</title></rect>`;
    x += scale(part.value);
    return rect;
  });
  const [from, to] = [labelWidth + scale(spread.min), labelWidth + scale(spread.max)].map((at) => at.toFixed(1));
  const whisker = `<line class="whisker" x1="${from}" x2="${to}" y1="${middle}" y2="${middle}"/>`;
  const value = `<text x="${(Number(to) + 8).toFixed(1)}" y="${middle + 4}">${short(spread.median)}</text>`;
  const name = `<text x="${labelWidth - 8}" y="${middle + 4}" text-anchor="end">${escape(label)}</text>`;
  return [name, ...rects, whisker, value].join("");
}

/** Draws a line per program with the share of chunks that arrived within a time, on a logarithmic axis. */
export function delayChart(
  title: string,
  note: string,
  lines: readonly { readonly label: string; readonly buckets: Buckets }[],
): string {
  const [left, right, bottom, height] = [60, width - 150, 320, 350];
  const [fromUs, toUs] = [10, 1_000_000];
  const x = (us: number) =>
    left + (Math.log(Math.min(Math.max(us, fromUs), toUs) / fromUs) / Math.log(toUs / fromUs)) * (right - left);
  const y = (share: number) => bottom - share * (bottom - top);
  const axes = [10, 100, 1_000, 10_000, 100_000, 1_000_000].map(
    (us) =>
      `<line class="axis" x1="${x(us)}" x2="${x(us)}" y1="${top}" y2="${bottom}"/><text class="note" x="${x(us)}" y="${bottom + 18}" text-anchor="middle">${us < 1_000 ? `${us} µs` : us < 1_000_000 ? `${us / 1_000} ms` : "1 s"}</text>`,
  );
  const levels = [0, 0.5, 0.9, 1].map(
    (share) =>
      `<line class="axis" x1="${left}" x2="${right}" y1="${y(share)}" y2="${y(share)}"/><text class="note" x="${left - 8}" y="${y(share) + 4}" text-anchor="end">${share * 100} %</text>`,
  );
  const curves = lines.map(({ label, buckets }, n) => {
    const kind = `l${n % 7}`;
    const labelY = top + 14 + n * 20;
    const name = `<line class="line ${kind}" x1="${right + 14}" x2="${right + 34}" y1="${labelY - 4}" y2="${labelY - 4}"/><text x="${right + 40}" y="${labelY}">${escape(label)}</text>`;
    return `<path class="line ${kind}" d="${pathOf(buckets, x, y)}"/>${name}`;
  });
  return svg(title, note, height, [...axes, ...levels, ...curves].join("\n"));
}

function pathOf(buckets: Buckets, x: (us: number) => number, y: (share: number) => number): string {
  const total = buckets.reduce((sum, [, count]) => sum + count, 0);
  let seen = 0;
  const points = buckets.map(([from, count]) => {
    seen += count;
    return `${x(from).toFixed(1)},${y(seen / total).toFixed(1)}`;
  });
  return points.length === 0 ? "" : `M${points.join("L")}`;
}

function svg(title: string, note: string, height: number, content: string): string {
  const heads = `<text class="title" x="8" y="18">${escape(title)}</text><text class="note" x="8" y="35">${escape(note)}</text>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escape(title)}">
${style}
${heads}
${content}
</svg>
`;
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
