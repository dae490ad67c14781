/** The metrics page has the programs' declarations, in sentences that can be read alone. */
import { expect, test } from "vitest";
import { declaredMetrics, metricsFile, metricsPage } from "./metrics-page.ts";

test("metrics.md is fresh (node docs/tools/metrics-page.ts) [G3]", async () => {
  await expect(await metricsPage()).toMatchFileSnapshot(metricsFile);
});

test("every metric has a meaning, and every metric in alerts has a hint when to look into it [G3]", async () => {
  const { router, agent } = await declaredMetrics();
  expect([router.length > 30, agent.length > 50]).toEqual([true, true]);
  for (const { name, meaning, worry = "never" } of [...router, ...agent]) {
    expect([name, meaning]).toEqual([name, expect.stringMatching(/^[A-Z01].{10,}[^.]$/)]);
    expect([name, worry]).toEqual([name, expect.stringMatching(/^.*[^.]$/)]);
  }
  const worrying = [...router, ...agent].filter(({ worry }) => worry !== undefined);
  expect(worrying.length).toBeGreaterThan(40);
});

test("no label has the name of a label that Prometheus adds to targets", async () => {
  const { router, agent } = await declaredMetrics();
  // Labels of targets: `job` and `instance` of all, `node` of nodes. The router's metrics about nodes also have `node`.
  const taken = [...router, ...agent].flatMap(({ name, labels }) =>
    labels.filter((label) => ["job", "instance"].includes(label)).map((label) => `${name} ${label}`),
  );
  expect(taken).toEqual([]);
  expect(agent.filter(({ labels }) => labels.includes("node"))).toEqual([]);
});
