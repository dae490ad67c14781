/** The page of metrics says what the programs declare, in words that stand alone. */
import { expect, test } from "vitest";
import { declaredMetrics, metricsFile, metricsPage } from "./metrics-page.ts";

test("METRICS.md is fresh (node deploy/metrics-page.ts)", async () => {
  await expect(await metricsPage()).toMatchFileSnapshot(metricsFile);
});

test("every metric says what it means, and what alerts look at says when to look into it", async () => {
  const { router, agent } = await declaredMetrics();
  expect([router.length > 30, agent.length > 50]).toEqual([true, true]);
  for (const { name, meaning, worry = "never" } of [...router, ...agent]) {
    expect([name, meaning]).toEqual([name, expect.stringMatching(/^[A-Z01].{10,}[^.]$/)]);
    expect([name, worry]).toEqual([name, expect.stringMatching(/^.*[^.]$/)]);
  }
  const worrying = [...router, ...agent].filter(({ worry }) => worry !== undefined);
  expect(worrying.length).toBeGreaterThan(40);
});

test("no label has a name that Prometheus gives to every target", async () => {
  const { router, agent } = await declaredMetrics();
  // A target's own labels: `job` and `instance` of all, `node` of nodes (the router's metrics are about nodes).
  const taken = [...router, ...agent].flatMap(({ name, labels }) =>
    labels.filter((label) => ["job", "instance"].includes(label)).map((label) => `${name} ${label}`),
  );
  expect(taken).toEqual([]);
  expect(agent.filter(({ labels }) => labels.includes("node"))).toEqual([]);
});
