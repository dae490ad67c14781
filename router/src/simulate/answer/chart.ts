/** Draws a run over its time as SVG: the waits of each model, and what each slot does. Readable on light and dark pages. */
import { switching, type Timeline } from "../engine/timeline.ts";
import { fixed } from "./numbers.ts";
import { colourOf, curve, escaped, label, level, mark, pixels, svgChart, type Plot } from "./svg.ts";

interface Chart {
  readonly timeline: Timeline;
  readonly models: readonly string[];
  /** The answer's first line. */
  readonly title: string;
  /** When the load begins, in milliseconds after midnight. */
  readonly startsAtMs: number;
}

const width = 960;
const plot: Plot = { left: 150, right: width - 16, top: 64, bottom: 264 };
const slotsTop = plot.bottom + 70;
const [rowHeight, rowGap] = [18, 4];
/** More slots would make a chart that nobody reads. */
const slotsMax = 60;

const light = ".idle{fill:#eaeef2}.switch{fill:#1f2328}";
const dark = ".idle{fill:#21262d}.switch{fill:#e6edf3}";

export function chartOf({ timeline, models, title, startsAtMs }: Chart): string {
  const slots = timeline.slots.slice(0, slotsMax);
  const bottom = slotsTop + slots.length * (rowHeight + rowGap);
  const further = timeline.slots.length - slots.length;
  const note = "Wait that nineteen of twenty requests do not exceed, in seconds";
  return svgChart({ title, note, width, height: bottom + 54, light, dark }, [
    ...waitLines(timeline, models),
    label({ x: 8, y: slotsTop - 34 }, `What each slot does${further > 0 ? `, without ${further} further slots` : ""}`),
    ...legend(models, slotsTop - 14),
    ...slots.flatMap((slot, index) => slotRow(slot, models, timeline.partMs, slotsTop + index * (rowHeight + rowGap))),
    ...hours(timeline, startsAtMs, bottom + 14),
  ]);
}

function waitLines({ waits }: Timeline, models: readonly string[]): readonly string[] {
  const seconds = models.map((model) =>
    (waits.get(model) ?? []).map((histogram) => histogram && histogram.quantileMs(0.95) / 1_000),
  );
  const most = Math.max(1, ...seconds.flat().filter((value) => value !== undefined));
  const y = (value: number) => plot.bottom - ((plot.bottom - plot.top) * value) / most;
  const levels = [0, 0.5, 1].map((share) => level(plot, y(share * most), fixed(share * most)));
  const lines = seconds.map((values, model) => {
    const points = values.flatMap((value, part) =>
      value === undefined ? [] : { x: xOf((part + 0.5) / values.length), y: y(value) },
    );
    return curve(model, points, models[model]!);
  });
  return [...levels, ...lines];
}

function slotRow(
  { name, uses }: Timeline["slots"][number],
  models: readonly string[],
  partMs: number,
  y: number,
): readonly string[] {
  const idle = `<rect class="idle" x="${plot.left}" y="${y}" width="${plot.right - plot.left}" height="${rowHeight}"/>`;
  const order = [...models, switching].filter((use) => uses.has(use));
  const parts = uses.values().next().value?.length ?? 0;
  const bars = order.map((use, position) => {
    const kind = use === switching ? "switch" : colourOf("f", models.indexOf(use));
    const below = order.slice(0, position);
    const path = Array.from({ length: parts }, (_, part) => {
      const from = below.reduce((sum, other) => sum + uses.get(other)![part]!, 0) / partMs;
      const share = uses.get(use)![part]! / partMs;
      if (share === 0) return "";
      const [x, to] = [xOf(part / parts), xOf((part + 1) / parts)].map(pixels);
      const [top, bottom] = [y + rowHeight * (1 - from - share), y + rowHeight * (1 - from)].map(pixels);
      return `M${x},${bottom}V${top}H${to}V${bottom}Z`;
    });
    return `<path class="${kind}" d="${path.join("")}"><title>${escaped(use.trim())}</title></path>`;
  });
  return [label({ x: plot.left - 8, y: y + rowHeight - 4 }, `slot ${name}`, { anchor: "end" }), idle, ...bars];
}

function legend(models: readonly string[], y: number): readonly string[] {
  let { left: x } = plot;
  return [...models, switching].map((use, index) => {
    const kind = use === switching ? "switch" : colourOf("f", index);
    const shown = `<rect class="${kind}" x="${x}" y="${y - 11}" width="12" height="12"/>${label({ x: x + 18, y }, use.trim())}`;
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
    marks.push(mark(plot, xOf((atMs - startsAtMs) / durationMs), timeOf(atMs, stepMs), y));
  }
  return marks;
}

function timeOf(atMs: number, stepMs: number): string {
  if (stepMs >= 86_400_000) return `day ${Math.round(atMs / 86_400_000)}`;
  const minutes = Math.floor(atMs / 60_000) % 1_440;
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}`;
}

function xOf(share: number): number {
  return plot.left + (plot.right - plot.left) * share;
}
