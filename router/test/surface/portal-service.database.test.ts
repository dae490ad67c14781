/** Routes about the API itself: refusals, limits and changelog. */
import { beforeAll, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { parseCatalogue } from "@weiche/shared/catalogue.ts";
import { apiErrors } from "@weiche/shared/errors.ts";
import { htmlPage, pageRefusals } from "../../src/edge/html-pages.ts";
import { startPortal, type Person } from "./portal-rig.ts";

let cleo: Person;
let changes: ReturnType<typeof changesOf> = [];
const portal = await forThisFile(startPortal({ parts: () => ({ changes: () => changes }) }));
beforeAll(async () => {
  cleo = await portal.newUser(await portal.newAccount("ACME"), "member");
});

function changesOf(text: string) {
  const model =
    "{ id: m, category: coding, status: Beta, contextTokens: 9, factors: [{ validFrom: 2026-01-01, factor: 1 }] }";
  return parseCatalogue(`models: [${model}]\nchanges: ${text}`).changes!;
}

test("every refusal is listed with its status, its code and whether to retry, sorted by status [H7]", async () => {
  const { refusals } = (await portal.get("/service", cleo)).json;
  const kinds = refusals.map(({ kind }: { kind: string }) => kind);
  expect(kinds.toSorted()).toEqual([...Object.keys(apiErrors), ...Object.keys(pageRefusals)].toSorted());
  const statuses = refusals.map(({ status }: { status: number }) => status);
  expect(statuses).toEqual(statuses.toSorted());
  const retried = refusals.filter(({ retry }: { retry: boolean }) => retry);
  expect(retried.map(({ kind }: { kind: string }) => kind).toSorted()).toEqual([
    ...["address_limit", "engine_died", "internal", "maintenance", "model_switching", "model_unavailable"],
    ...["no_node_available", "overloaded", "rate_limit_exceeded", "timeout"],
  ]);
  const pages = refusals.filter(({ code }: { code: string | null }) => code === null);
  for (const { status } of pages) expect(htmlPage(status)).toContain(String(status));
});

test("the limits are this router's settings", async () => {
  expect((await portal.get("/service", cleo)).json.limits).toEqual({
    ...{ requestsPerSecond: 10, requestBurst: 20, bodyBytes: 20 << 20, requestSeconds: 600, activeKeysPerUser: 25 },
    ...{ usersPerAccount: 10_000, changesAtOnce: 1_000 },
  });
  await using free = await startPortal({
    database: portal.database,
    parts: () => ({ apiLimits: { perIpPerSecond: 0, perIpBurst: 20, requestMsMax: 30_000 } }),
  });
  expect((await free.get("/service", cleo)).json.limits).toMatchObject({ requestsPerSecond: null, requestSeconds: 30 });
});

test("the changelog shows the catalogue's current entries, newest first [H7]", async () => {
  expect((await portal.get("/changes", cleo)).json).toEqual({ items: [] });
  changes = changesOf(
    `[{ at: "2026-01-01T00:00:00+01:00", text: { de: Alt, en: Old } },
      { at: "2027-01-01T00:00:00+01:00", text: { de: Neu, en: New }, models: [m, gone] }]`,
  );
  expect((await portal.get("/changes", cleo)).json.items).toEqual([
    { at: "2026-12-31T23:00:00Z", text: { de: "Neu", en: "New" }, models: ["m", "gone"] },
    { at: "2025-12-31T23:00:00Z", text: { de: "Alt", en: "Old" }, models: [] },
  ]);
});
