/** The frame of SVG charts that are readable on light and dark pages: title, colours, axes and texts. Pure. */

interface Frame {
  readonly title: string;
  readonly note: string;
  readonly width: number;
  readonly height: number;
  /** Further rules of style. */
  readonly light?: string;
  readonly dark?: string;
}

/** The area of a chart, in pixels. */
export interface Plot {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

const lightColours = ["#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989", "#9a6700", "#0550ae", "#57606a"];
const darkColours = ["#4493f8", "#f0883e", "#3fb950", "#ab7df8", "#db61a2", "#d29922", "#80ccff", "#9198a1"];
const rulesOf = (colours: readonly string[]) =>
  colours.map((colour, index) => `.l${index}{stroke:${colour}}.f${index}{fill:${colour}}`).join("");

export function svgChart(
  { title, note, width, height, light = "", dark = "" }: Frame,
  parts: readonly string[],
): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(title)}">
<style>
text{font:13px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600;font-size:15px}.note{fill:#59636e;font-size:12px}
.line{fill:none;stroke-width:2;stroke-linejoin:round}.axis{stroke:#d1d9e0;stroke-width:1}${light}
${rulesOf(lightColours)}
@media (prefers-color-scheme: dark){text{fill:#e6edf3}.note{fill:#9198a1}.axis{stroke:#3d444d}${dark}
${rulesOf(darkColours)}}
</style>
${label({ x: 8, y: 18 }, title, { kind: "title" })}
${label({ x: 8, y: 35 }, note)}
${parts.join("\n")}
</svg>
`;
}

/** The class of the line (`l`) or the area (`f`) of a series. Colours repeat after eight. */
export function colourOf(what: "l" | "f", series: number): string {
  return `${what}${series % lightColours.length}`;
}

interface Place {
  readonly x: number;
  readonly y: number;
}

interface LabelStyle {
  readonly kind?: "title" | "note" | "text";
  readonly anchor?: "start" | "middle" | "end";
}

export function label({ x, y }: Place, text: string, { kind = "note", anchor = "start" }: LabelStyle = {}): string {
  return `<text class="${kind}" x="${pixels(x)}" y="${pixels(y)}" text-anchor="${anchor}">${escaped(text)}</text>`;
}

/** A line across the plot, with its value on the left. */
export function level({ left, right }: Plot, y: number, text: string): string {
  return `${axis({ x: left, y }, { x: right, y })}${label({ x: left - 8, y: y + 4 }, text, { anchor: "end" })}`;
}

/** A line down the plot, with its value at `labelY`. */
export function mark({ top, bottom }: Plot, x: number, text: string, labelY = bottom + 18): string {
  return `${axis({ x, y: top }, { x, y: bottom })}${label({ x, y: labelY }, text, { anchor: "middle" })}`;
}

function axis(from: Place, to: Place): string {
  return `<line class="axis" x1="${pixels(from.x)}" x2="${pixels(to.x)}" y1="${pixels(from.y)}" y2="${pixels(to.y)}"/>`;
}

/** The line of a series through points. Empty without a point. */
export function curve(series: number, points: readonly Place[], title: string): string {
  if (points.length === 0) return "";
  const places = points.map(({ x, y }) => `${pixels(x)},${pixels(y)}`).join("L");
  return `<path class="line ${colourOf("l", series)}" d="M${places}"><title>${escaped(title)}</title></path>`;
}

/** A point with one digit, in which nobody sees a difference. */
export function pixels(value: number): string {
  return value.toFixed(1);
}

export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
