/** Draws a run over its time as SVG: the waits of each model, and what each slot does. Readable on light and dark pages. */
import { switching, type Timeline } from "../engine/timeline.ts";
import { fixed } from "./numbers.ts";

interface Chart {
  readonly timeline: Timeline;
  readonly models: readonly string[];
  /** The answer's first line. */
  readonly title: string;
  /** When the load begins, in milliseconds after midnight. */
  readonly startsAtMs: number;
}

const [width, left, right] = [960, 150, 16];
const plot = width - left - right;
const [waitsTop, waitsHeight] = [64, 200];
const [rowHeight, rowGap] = [18, 4];
/** More slots would make a chart that nobody reads. */
const slotsMax = 60;

const light = ["#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989", "#9a6700", "#0550ae", "#57606a"];
const dark = ["#4493f8", "#f0883e", "#3fb950", "#ab7df8", "#db61a2", "#d29922", "#80ccff", "#9198a1"];
const rulesOf = (colours: readonly string[]) =>
  colours.map((colour, index) => `.l${index}{stroke:${colour}}.f${index}{fill:${colour}}`).join("");
const style = `<style>
text{font:13px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600;font-size:15px}.note{fill:#59636e;font-size:12px}
.line{fill:none;stroke-width:2;stroke-linejoin:round}.axis{stroke:#d1d9e0}.idle{fill:#eaeef2}.switch{fill:#1f2328}
${rulesOf(light)}
@media (prefers-color-scheme: dark){text{fill:#e6edf3}.note{fill:#9198a1}.axis{stroke:#3d444d}.idle{fill:#21262d}.switch{fill:#e6edf3}
${rulesOf(dark)}}
</style>`;

export function chartOf({ timeline, models, title, startsAtMs }: Chart): string {
  const slots = timeline.slots.slice(0, slotsMax);
  const slotsTop = waitsTop + waitsHeight + 70;
  const height = slotsTop + slots.length * (rowHeight + rowGap) + 54;
  const further = timeline.slots.length - slots.length;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(title)}">`,
    style,
    label(8, 20, title, "title"),
    label(8, 40, "Wait that nineteen of twenty requests do not exceed, in seconds"),
    ...waitLines(timeline, models),
    label(8, slotsTop - 34, `What each slot does${further > 0 ? `, without ${further} further slots` : ""}`),
    ...legend(models, slotsTop - 14),
    ...slots.flatMap((slot, index) => slotRow(slot, models, timeline.partMs, slotsTop + index * (rowHeight + rowGap))),
    ...hours(timeline, startsAtMs, slotsTop + slots.length * (rowHeight + rowGap) + 14),
    "</svg>\n",
  ].join("\n");
}

function waitLines({ waits }: Timeline, models: readonly string[]): readonly string[] {
  const seconds = models.map((model) =>
    (waits.get(model) ?? []).map((histogram) => histogram && histogram.quantileMs(0.95) / 1_000),
  );
  const most = Math.max(1, ...seconds.flat().filter((value) => value !== undefined));
  const y = (value: number) => waitsTop + waitsHeight * (1 - value / most);
  const levels = [0, 0.5, 1].map((share) => {
    const at = y(share * most);
    return `<line class="axis" x1="${left}" x2="${left + plot}" y1="${at}" y2="${at}"/>${label(left - 8, at + 4, fixed(share * most), "note", "end")}`;
  });
  const lines = seconds.map((values, model) => {
    const points = values.flatMap((value, part) =>
      value === undefined ? [] : `${xOf((part + 0.5) / values.length)},${y(value).toFixed(1)}`,
    );
    if (points.length === 0) return "";
    return `<path class="line l${model % light.length}" d="M${points.join("L")}"><title>${escaped(models[model]!)}</title></path>`;
  });
  return [...levels, ...lines];
}

function slotRow(
  { name, uses }: Timeline["slots"][number],
  models: readonly string[],
  partMs: number,
  y: number,
): readonly string[] {
  const idle = `<rect class="idle" x="${left}" y="${y}" width="${plot}" height="${rowHeight}"/>`;
  const order = [...models, switching].filter((use) => uses.has(use));
  const parts = uses.values().next().value?.length ?? 0;
  const bars = order.map((use, position) => {
    const kind = use === switching ? "switch" : `f${models.indexOf(use) % light.length}`;
    const below = order.slice(0, position);
    const path = Array.from({ length: parts }, (_, part) => {
      const from = below.reduce((sum, other) => sum + uses.get(other)![part]!, 0) / partMs;
      const share = uses.get(use)![part]! / partMs;
      if (share === 0) return "";
      const [x, to] = [xOf(part / parts), xOf((part + 1) / parts)];
      const [top, bottom] = [y + rowHeight * (1 - from - share), y + rowHeight * (1 - from)];
      return `M${x},${bottom.toFixed(1)}V${top.toFixed(1)}H${to}V${bottom.toFixed(1)}Z`;
    });
    return `<path class="${kind}" d="${path.join("")}"><title>${escaped(use.trim())}</title></path>`;
  });
  return [label(left - 8, y + rowHeight - 4, `slot ${name}`, "note", "end"), idle, ...bars];
}

function legend(models: readonly string[], y: number): readonly string[] {
  let x = left;
  return [...models, switching].map((use, index) => {
    const kind = use === switching ? "switch" : `f${index % light.length}`;
    const shown = `<rect class="${kind}" x="${x}" y="${y - 11}" width="12" height="12"/>${label(x + 18, y, use.trim(), "note")}`;
    x += 40 + 7 * use.length;
    return shown;
  });
}

/** At most twelve marks of the time of the day, or of days. */
function hours({ partMs, slots, waits }: Timeline, startsAtMs: number, y: number): readonly string[] {
  const parts = waits.values().next().value?.length ?? slots[0]?.uses.values().next().value?.length ?? 0;
  const durationMs = parts * partMs;
  const steps = [60_000, 600_000, 1_800_000, 3_600_000, 10_800_000, 21_600_000, 86_400_000, 604_800_000];
  const stepMs = steps.find((step) => durationMs / step <= 12) ?? durationMs;
  const marks: string[] = [];
  for (let atMs = Math.ceil(startsAtMs / stepMs) * stepMs; atMs <= startsAtMs + durationMs; atMs += stepMs) {
    const x = xOf((atMs - startsAtMs) / durationMs);
    marks.push(
      `<line class="axis" x1="${x}" x2="${x}" y1="${waitsTop}" y2="${waitsTop + waitsHeight}"/>${label(Number(x), y, timeOf(atMs, stepMs), "note", "middle")}`,
    );
  }
  return marks;
}

function timeOf(atMs: number, stepMs: number): string {
  if (stepMs >= 86_400_000) return `day ${Math.round(atMs / 86_400_000)}`;
  const minutes = Math.floor(atMs / 60_000) % 1_440;
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}`;
}

function xOf(share: number): string {
  return (left + plot * share).toFixed(1);
}

function label(x: number, y: number, text: string, kind = "note", anchor = "start"): string {
  return `<text class="${kind}" x="${x}" y="${y.toFixed(1)}" text-anchor="${anchor}">${escaped(text)}</text>`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
