/**
 * Checks the rules with promtool: their metrics exist, every alert is tested, and the runbook has an entry for it.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { createMetrics } from "../../router/src/metrics.ts";
import { promtool } from "../../e2e/cluster/promtool.ts";
import { askedSeries, labelsOfMetrics, readRules, rulesFile, unknownSeries } from "./rules.ts";

const here = import.meta.dirname;
const testFiles = ["tests.yml", "tests-of-days.yml", "tests-of-recorded.yml"].map((file) => join(here, file));
const { alerts, recorded } = readRules();
const rules = [...alerts, ...recorded];
const names = alerts.map(({ alert }) => alert);

test("promtool accepts the rules", needs("promtool"), () => {
  const { status, said } = promtool(["check", "rules", rulesFile]);
  expect([status, said]).toEqual([0, expect.stringContaining(`SUCCESS: ${rules.length} rules found`)]);
});

test(
  "each simulated fault fires exactly its alerts, and a healthy fleet fires none [G3]",
  { ...needs("promtool"), timeout: 300_000 },
  () => {
    const { status, said } = promtool(["test", "rules", ...testFiles]);
    expect([status, said]).toEqual([0, expect.stringContaining("SUCCESS")]);
  },
);

test("every alert fires in a simulated fault [G3]", () => {
  const tried = testFiles.map((file) => readFileSync(file, "utf8")).join("\n");
  const fired = new Set([...tried.matchAll(/alertname="(\w+)"/g)].map(([, name]) => name!));
  expect(fired).toEqual(new Set(names));
});

test("every recorded series is tested with known numbers", () => {
  const tried = readFileSync(join(here, "tests-of-recorded.yml"), "utf8");
  const untried = recorded.filter(({ record }) => !new RegExp(`expr: .*${record}`).test(tried));
  expect(untried.map(({ record }) => record)).toEqual([]);
});

test("the runbook has an entry for every alert, and no others [G3]", () => {
  const runbook = readFileSync(join(here, "../../docs/runbook.md"), "utf8");
  const entries = [
    ...runbook.matchAll(/^### (\w+)\n\n\*\*Means:\*\* [\s\S]+?\n\n\*\*Look at:\*\* .+\n\n\*\*Do:\*\* .+$/gm),
  ];
  expect(entries.map(([, name]) => name)).toEqual(names);
  expect(runbook.match(/^### Weiche/gm)).toHaveLength(names.length);
  const links = alerts.map(({ annotations }) => annotations.runbook);
  expect(links).toEqual(names.map((name) => `runbook.md#${name.toLowerCase()}`));
  expect(alerts.filter(({ labels }) => !["critical", "warning"].includes(labels.severity))).toEqual([]);
});

test("the rules use only metrics and labels of router and agent [G3]", async () => {
  const labelsOf = await labelsOfMetrics();
  const wrong = rules.flatMap(({ expr }) => unknownSeries(expr, labelsOf));
  expect(wrong).toEqual([]);
  expect(rules.flatMap(({ expr }) => askedSeries(expr)).length).toBeGreaterThan(45);
  expect(unknownSeries('rate(weiche_router_requests_total{modle="m"}[5m])', labelsOf)).toHaveLength(1);
  expect(unknownSeries("instance:weiche_router_requests:rate10m", labelsOf)).toHaveLength(1);
  const pattern = /"weiche_\(router\|agent\)_certificate_expiry_timestamp_seconds"/;
  expect(rules.filter(({ expr }) => pattern.test(expr))).toHaveLength(1);
});

async function refusalReasons(): Promise<readonly string[]> {
  const { values } = await createMetrics(() => 0).refusals.get();
  return values.map(({ labels }) => String(labels.reason));
}

test("the rules use only label values that exist", async () => {
  const text = readFileSync(rulesFile, "utf8");
  const page = readFileSync(join(here, "../../docs/metrics.md"), "utf8");
  const asked = [...text.matchAll(/\b(state|outcome|result|name|what|reason)=~?"([^"]+)"/g)].flatMap(([, , words]) =>
    words!.split("|"),
  );
  expect(asked.length).toBeGreaterThan(12);
  const refusals = await refusalReasons();
  expect(asked.filter((word) => !page.includes(`\`${word}\``) && !refusals.includes(word))).toEqual([]);
});
