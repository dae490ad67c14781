/** Reads rules.yml, and finds the metrics and labels in expressions. For the tests of rules and dashboards. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { declaredMetrics } from "../../docs/tools/metrics-page.ts";

export const rulesFile = join(import.meta.dirname, "rules.yml");

interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}

interface RecordingRule {
  /** `level:metric:operations`. The level is the series' labels, joined by `_`. */
  readonly record: string;
  readonly expr: string;
}

export function readRules(): { readonly alerts: readonly AlertRule[]; readonly recorded: readonly RecordingRule[] } {
  const { groups } = parse(readFileSync(rulesFile, "utf8")) as {
    readonly groups: readonly { readonly rules: readonly (AlertRule | RecordingRule)[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);
  return {
    alerts: rules.filter((rule) => "alert" in rule),
    recorded: rules.filter((rule) => "record" in rule),
  };
}

interface AskedSeries {
  readonly selector: string;
  readonly name: string;
  readonly labels: readonly string[];
}

/** Returns Weiche's metrics in an expression, with the labels that it matches. */
export function askedSeries(expr: string): readonly AskedSeries[] {
  const selectors = expr.matchAll(/(?<![\w:"])((?:\w+:)?weiche_[\w:]+)(?:\{([^}]*)\})?/g);
  return Array.from(selectors, ([selector, name, matchers = ""]) => ({
    selector,
    name: name!,
    labels: Array.from(matchers.matchAll(/(\w+)\s*(?:=|!)/g), ([, label]) => label!),
  }));
}

/** Returns the labels of all metrics, from the programs and from recording rules. */
export async function labelsOfMetrics(): Promise<ReadonlyMap<string, readonly string[]>> {
  // Every target has these labels. Nodes also have `node`.
  const { router, agent } = await declaredMetrics();
  const ofPrograms = [
    ...router.map(({ name, type, labels }) => ({ name, type, labels: [...labels, "job", "instance"] })),
    ...agent.map(({ name, type, labels }) => ({ name, type, labels: [...labels, "job", "instance", "node"] })),
  ].flatMap(({ name, type, labels }): [string, string[]][] =>
    type === "histogram"
      ? [
          [`${name}_bucket`, [...labels, "le"]],
          [`${name}_sum`, labels],
          [`${name}_count`, labels],
        ]
      : [[name, labels]],
  );
  const recorded = readRules().recorded.map(({ record }): [string, string[]] => [
    record,
    record.slice(0, record.indexOf(":")).split("_"),
  ]);
  return new Map([...ofPrograms, ...recorded]);
}

/** Returns the metrics and labels of an expression that no program or rule has, such as `metric` or `metric{label}`. */
export function unknownSeries(expr: string, labelsOf: ReadonlyMap<string, readonly string[]>): readonly string[] {
  return askedSeries(expr).flatMap(({ name, labels }) => {
    const known = labelsOf.get(name);
    if (!known) return [name];
    return labels.filter((label) => !known.includes(label)).map((label) => `${name}{${label}}`);
  });
}
