/** Reads `/metrics` of a program as Prometheus does, into samples and families. */
import type { RunningProgram } from "./cluster.ts";

export interface MetricFamily {
  readonly name: string;
  readonly help: readonly string[];
  readonly types: readonly string[];
  /** The value of each series `name{label="value",…}`, with labels in alphabetical order. */
  readonly samples: ReadonlyMap<string, number>;
}

const suffixes = /_(bucket|sum|count)$/;

export async function readMetrics({ listen }: RunningProgram): Promise<ReadonlyMap<string, MetricFamily>> {
  return parseMetrics(await (await fetch(`http://${listen["ops"]}/metrics`)).text());
}

export async function readSamples(program: RunningProgram): Promise<ReadonlyMap<string, number>> {
  return samplesOf(await readMetrics(program));
}

/** Parses the text. Throws if a line is neither comment nor sample, or if a series occurs twice. */
export function parseMetrics(text: string): ReadonlyMap<string, MetricFamily> {
  const families = new Map<string, { name: string; help: string[]; types: string[]; samples: Map<string, number> }>();
  const family = (name: string) => {
    const known = families.get(name) ?? { name, help: [], types: [], samples: new Map<string, number>() };
    families.set(name, known);
    return known;
  };
  for (const line of text.split("\n").filter((each) => each !== "")) {
    const comment = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line);
    if (comment) {
      const [, what, name, words] = comment;
      family(name!)[what === "HELP" ? "help" : "types"].push(words!);
      continue;
    }
    const sample = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!sample || !/^([+-]?Inf|NaN|-?[\d.]+(e[+-]?\d+)?)$/i.test(sample[3]!)) throw new Error(`not a sample: ${line}`);
    const [, name, labels = "", value] = sample;
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, is]) => [key!, is!]);
    const series = seriesOf(name!, Object.fromEntries(pairs));
    const { samples } = family(families.has(name!) ? name! : name!.replace(suffixes, ""));
    if (samples.has(series)) throw new Error(`there twice: ${series}`);
    samples.set(series, Number(value));
  }
  return families;
}

export function seriesOf(name: string, labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `${name}{${pairs.map(([key, value]) => `${key}="${value}"`).join(",")}}`;
}

/** Returns the samples of all families. */
export function samplesOf(families: ReadonlyMap<string, MetricFamily>): ReadonlyMap<string, number> {
  return new Map([...families.values()].flatMap(({ samples }) => [...samples]));
}
