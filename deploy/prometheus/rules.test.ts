/** The alert rules as Prometheus' own checker sees them, what they ask for, and that each has its entry in the runbook. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { promtool } from "../../benchmarks/cluster/promtool.ts";
import { declaredMetrics } from "../metrics-page.ts";

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}

const here = import.meta.dirname;
const rulesFile = join(here, "rules.yml");
const testFiles = ["tests.yml", "tests-of-days.yml"].map((file) => join(here, file));
const { groups } = parse(readFileSync(rulesFile, "utf8")) as { readonly groups: readonly { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);
const names = rules.map(({ alert }) => alert);

test("promtool takes the rules", () => {
  const { status, said } = promtool(["check", "rules", rulesFile]);
  expect([status, said]).toEqual([0, expect.stringContaining(`SUCCESS: ${rules.length} rules found`)]);
});

test("each fault fires its alerts and no other, a healthy fleet none", { timeout: 300_000 }, () => {
  const { status, said } = promtool(["test", "rules", ...testFiles]);
  expect([status, said]).toEqual([0, expect.stringContaining("SUCCESS")]);
});

test("each alert fires in a fault that is tried", () => {
  const tried = testFiles.map((file) => readFileSync(file, "utf8")).join("\n");
  const fired = new Set([...tried.matchAll(/alertname="(\w+)"/g)].map(([, name]) => name!));
  expect(fired).toEqual(new Set(names));
});

test("each alert has its entry in the runbook, and the runbook has no other", () => {
  const runbook = readFileSync(join(here, "../RUNBOOK.md"), "utf8");
  const entries = [...runbook.matchAll(/^### (\w+)\n\n\*\*Means:\*\* .+\n\n\*\*Look at:\*\* .+\n\n\*\*Do:\*\* .+$/gm)];
  expect(entries.map(([, name]) => name)).toEqual(names);
  expect(runbook.match(/^### /gm)).toHaveLength(names.length);
  const links = rules.map(({ annotations }) => annotations.runbook);
  expect(links).toEqual(names.map((name) => `RUNBOOK.md#${name.toLowerCase()}`));
  expect(rules.filter(({ labels }) => !["critical", "warning"].includes(labels.severity))).toEqual([]);
});

test("the rules ask for metrics and labels that router and agent have", async () => {
  const { router, agent } = await declaredMetrics();
  const labelsOf = new Map([...router, ...agent].map(({ name, labels }) => [name, labels]));
  // What every target has, and what histograms add.
  const always = ["job", "instance", "le", "__name__"];
  const ofAsked = rules.flatMap(({ alert, expr }) =>
    [...expr.matchAll(/\b(weiche_\w+)(?:\{([^}]*)\})?/g)].map(([, asked, matchers = ""]) => {
      const name = labelsOf.has(asked!) ? asked! : asked!.replace(/_(bucket|sum|count)$/, "");
      const labels = [...matchers.matchAll(/(\w+)\s*(?:=|!)/g)].map(([, label]) => label!);
      return { alert, name, labels };
    }),
  );
  const wrong = ofAsked.filter(
    ({ name, labels }) =>
      !labelsOf.has(name) || !labels.every((label) => [...labelsOf.get(name)!, ...always].includes(label)),
  );
  const patterns = /weiche_\(router\|agent\)_certificate_expiry_timestamp_seconds/;
  expect(wrong.filter(({ alert }) => !alert.startsWith("WeicheCertificate"))).toEqual([]);
  expect(rules.filter(({ expr }) => patterns.test(expr)).length).toBe(2);
  expect(ofAsked.length).toBeGreaterThan(35);
});

test("the values of labels that the rules ask for are ones that exist", async () => {
  const text = readFileSync(rulesFile, "utf8");
  const page = readFileSync(join(here, "../METRICS.md"), "utf8");
  const asked = [...text.matchAll(/\b(state|outcome|result|name|what)=~?"([^"]+)"/g)].flatMap(([, , words]) =>
    words!.split("|"),
  );
  expect(asked.length).toBeGreaterThan(12);
  expect(asked.filter((word) => !page.includes(`\`${word}\``))).toEqual([]);
});
