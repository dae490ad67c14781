/** The dashboards are fresh, query existing metrics, and explain each panel. */
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { promtool } from "../../e2e/cluster/promtool.ts";
import { askedSeries, labelsOfMetrics, readRules, unknownSeries } from "../prometheus/rules.ts";
import { dashboardFile, dashboards, expand, jsonOf } from "./dashboards.ts";

interface Placed {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** A panel in the JSON. */
interface PanelJson {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: Placed;
  readonly datasource?: { readonly uid: string };
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string; readonly noValue?: string } };
  readonly targets?: readonly {
    readonly expr: string;
    readonly refId: string;
    readonly legendFormat?: string;
    readonly datasource: { readonly uid: string };
  }[];
}

interface DashboardJson {
  readonly uid: string;
  readonly title: string;
  readonly panels: readonly PanelJson[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: string | { query: string } }[];
  };
}

const read = (name: string) => JSON.parse(readFileSync(dashboardFile(name), "utf8")) as DashboardJson;
const names = Object.keys(dashboards) as (keyof typeof dashboards)[];
const all = names.map(read);
const expressions = all.flatMap(({ panels }) => panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)));

test.each(names)("%s.json is fresh (node deploy/grafana/dashboards.ts)", async (name) => {
  await expect(jsonOf(dashboards[name])).toMatchFileSnapshot(dashboardFile(name));
});

describe.each(names)("%s", (name) => {
  const { panels, templating } = read(name);
  const shown = panels.filter(({ type }) => type !== "row");

  test("every panel has a unit, a description, a text for missing data, and a selectable data source", () => {
    expect(shown.length).toBeGreaterThan(15);
    const lacking = shown.filter(({ title, description, datasource, fieldConfig, targets = [] }) => {
      const { unit, noValue } = fieldConfig?.defaults ?? {};
      const sources = [datasource, ...targets.map((target) => target.datasource)];
      const isWhole = title && unit && noValue && /^[A-Z0-9`].{10,}\.$/.test(description ?? "");
      return !isWhole || targets.length === 0 || sources.some((source) => source?.uid !== "${datasource}");
    });
    expect(lacking.map(({ title }) => title)).toEqual([]);
    const unnamed = shown.filter(
      ({ type, targets = [] }) => type === "timeseries" && targets.some((each) => !each.legendFormat),
    );
    expect(unnamed).toEqual([]);
  });

  test("panels have different numbers, and none covers another or leaves the grid", () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const covers = (a: Placed, b: Placed) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
    const covered = panels.flatMap((one, at) =>
      panels
        .slice(at + 1)
        .flatMap((other) => (covers(one.gridPos, other.gridPos) ? [`${one.title}, ${other.title}`] : [])),
    );
    expect(covered).toEqual([]);
    expect(panels.filter(({ gridPos: { x, w } }) => x + w > 24)).toEqual([]);
    for (const { targets = [] } of panels) expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
  });

  test("every variable is used, and every used variable exists", () => {
    const json = JSON.stringify(panels);
    const used = new Set([...json.matchAll(/\$\{?(?!__)(\w+)/g)].map(([, used]) => used!));
    expect([...used].toSorted()).toEqual(templating.list.map((variable) => variable.name).toSorted());
  });

  test("every variable and every expression queries existing metrics and labels", async () => {
    const labelsOf = await labelsOfMetrics();
    const queries = templating.list.flatMap(({ query }) => (typeof query === "string" ? [] : [query.query]));
    const wrong = [...queries, ...shown.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))].flatMap(
      (expr) => unknownSeries(expr, labelsOf),
    );
    expect(wrong).toEqual([]);
    for (const query of queries) {
      const [, series, label] = /^label_values\((.+), (\w+)\)$/.exec(query)!;
      expect(labelsOf.get(askedSeries(series!)[0]!.name)).toContain(label);
    }
  });
});

test("dashboards have different ids and titles, and panels of one dashboard different titles", () => {
  expect(new Set(all.map(({ uid }) => uid)).size).toBe(3);
  expect(new Set(all.map(({ title }) => title)).size).toBe(3);
  expect(all.filter(({ uid }) => !/^[a-z-]{8,40}$/.test(uid))).toEqual([]);
});

test("promtool can parse every expression", needs("promtool"), () => {
  const written = new Set(expressions.map((expr) => expand(expr, { rateInterval: "1m", range: "1h" })));
  const rules = [...written].map((expr, at) => ({ record: `expression:number:${at}`, expr }));
  const folder = mkdtempSync(join(tmpdir(), "weiche-dashboards-"));
  const file = join(folder, "rules.yml");
  writeFileSync(file, JSON.stringify({ groups: [{ name: "all", rules }] }));
  const { status, said } = promtool(["check", "rules", file]);
  rmSync(folder, { recursive: true });
  expect([status, said]).toEqual([0, expect.stringContaining(`SUCCESS: ${rules.length} rules found`)]);
  expect(rules.length).toBeGreaterThan(70);
});

test("every recorded series is used by an alert, another recording rule or a dashboard", () => {
  const { alerts, recorded } = readRules();
  const asked = [...alerts, ...recorded]
    .map(({ expr }) => expr)
    .concat(expressions)
    .flatMap(askedSeries);
  const names = new Set(asked.map(({ name }) => name));
  expect(recorded.map(({ record }) => record).filter((record) => !names.has(record))).toEqual([]);
});

test("no dashboard has data by account, user or key", () => {
  expect(expressions.filter((expr) => /account|user|key_id/.test(expr.replaceAll(/"[^"]*"/g, "")))).toEqual([]);
});

test("every JSON file in the folder is a dashboard of this list", () => {
  const files = readdirSync(import.meta.dirname).filter((file) => file.endsWith(".json"));
  expect(files.map((file) => join(import.meta.dirname, file)).toSorted()).toEqual(names.map(dashboardFile).toSorted());
});
