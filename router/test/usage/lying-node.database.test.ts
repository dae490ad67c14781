/** A node that reports false usage on its own link can bill only what a router has signed. */
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { asId, uuidv7, type NodeId } from "@weiche/shared/ids.ts";
import { FewLines } from "@weiche/shared/program/few-lines.ts";
import { createRandom } from "@weiche/shared/random.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { readGrants, type Grants } from "../../src/usage/grants.ts";
import { createUsageLedger, type UsageLedger } from "../../src/usage/usage-ledger.ts";
import type { Database } from "../../src/db/database.ts";
import { createEvents } from "../../src/events.ts";
import { createMetrics, type Metrics } from "../../src/metrics.ts";
import { testDatabases } from "../db/database-fixture.ts";
import type { LinkClient } from "../nodes/link-client.ts";
import { node, NodeLinkRig } from "../nodes/node-link-rig.ts";
import { granted, idOf, makeRecord } from "./usage-records.ts";

const other = asId<NodeId>("gpu-2");
const tokensMax = 32_768;
let grants: Grants;
let open: AsyncDisposableStack;
let rig: NodeLinkRig;
let ledger: UsageLedger;
let metrics: Metrics;
let logged: Record<string, unknown>[];

const server = await forThisFile(testDatabases());
const database = await server.newDatabase();
beforeEach(async () => {
  open = new AsyncDisposableStack();
  await database.pool.query("truncate usage_records, usage_totals, usage_days, key_uses");
  grants = await readGrants(database.pool);
  metrics = createMetrics(() => 0);
  logged = [];
  rig = await openRouter(database);
});
afterEach(() => open.disposeAsync());

async function openRouter(of: Database): Promise<NodeLinkRig> {
  const log = pino({ level: "warn" }, { write: (line) => void logged.push(JSON.parse(line) as object as never) });
  const events = createEvents(log, metrics, new FewLines(systemClock));
  const options = { grants: await readGrants(of.pool) };
  ledger = open.use(await createUsageLedger(of, systemClock, events, options));
  return open.use(await NodeLinkRig.open(ledger));
}

/** Makes the record of a request of 30 tokens that a router sent to `to`. */
function sent(more: Partial<UsageRecord> = {}, to = node): UsageRecord {
  const counts = { promptTokens: 10, completionTokens: 20, tokensMax };
  return granted(makeRecord(createRandom(1), Date.now(), { ...counts, ...more }), to, grants);
}

function wireOf({ factor, tokensMax: most, grant, ...record }: UsageRecord): object {
  const snake = Object.entries(record).map(([name, value]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    value,
  ]);
  return {
    ...(Object.fromEntries(snake) as object),
    factor_millicredits: String(factor),
    tokens_max: String(most),
    grant: Buffer.from(grant, "base64url"),
    source: `USAGE_SOURCE_${record.source.toUpperCase()}`,
    outcome: `REQUEST_OUTCOME_${record.outcome.toUpperCase().replace("-", "_")}`,
  };
}

let batchId = 0;
async function deliver(agent: LinkClient, ...records: readonly UsageRecord[]): Promise<void> {
  const batch = String(++batchId);
  agent.say({ usage_batch: { batch_id: batch, records: records.map(wireOf) } });
  const isAcknowledged = (message: object) =>
    (message as { usage_ack?: { batch_id: string } }).usage_ack?.batch_id === batch;
  await expect.poll(() => agent.received.some(isAcknowledged), { timeout: 5_000 }).toBe(true);
}

/** Reads the billed records: request, attempt, account and tokens of each. */
async function billed(): Promise<string[]> {
  const { rows } = await database.pool.query<{ row: string }>(
    `select concat_ws(' ', request_id, attempt, account_id, prompt_tokens + completion_tokens) as row from usage_records`,
  );
  return rows.map(({ row }) => row).sort();
}

function linesOf(...records: readonly UsageRecord[]): string[] {
  return records.map((r) => `${r.requestId} ${r.attempt} ${r.accountId} ${r.promptTokens + r.completionTokens}`).sort();
}

async function refused(): Promise<number> {
  const { values } = await metrics.usageRecords.get();
  return values.find(({ labels }) => labels.result === "refused")?.value ?? 0;
}

const fresh = () => asId<UsageRecord["requestId"]>(uuidv7(systemClock));
const lies: [name: string, lie: (honest: UsageRecord) => UsageRecord, reason: string][] = [
  ["another account", (r) => ({ ...r, accountId: idOf("a", 99) }), "wrong-grant"],
  ["another user", (r) => ({ ...r, userId: idOf("b", 99) }), "wrong-grant"],
  ["another key", (r) => ({ ...r, keyId: idOf("c", 99) }), "wrong-grant"],
  ["another model", (r) => ({ ...r, model: asId("dear-model") }), "wrong-grant"],
  ["a factor of 0", (r) => ({ ...r, factor: 0n as never }), "wrong-grant"],
  ["a higher factor", (r) => ({ ...r, factor: 900_000_000n as never }), "wrong-grant"],
  ["one attempt more", (r) => ({ ...r, attempt: r.attempt + 1 }), "wrong-grant"],
  ["an invented request", (r) => ({ ...r, requestId: fresh() }), "wrong-grant"],
  ["more tokens than the maximum", (r) => ({ ...r, completionTokens: tokensMax - 9 }), "too-many-tokens"],
  [
    "a changed maximum of tokens",
    (r) => ({ ...r, completionTokens: tokensMax, tokensMax: 10 * tokensMax }),
    "wrong-grant",
  ],
  ["no grant", (r) => ({ ...r, grant: "" }), "no-grant"],
  ["the first byte of a grant", (r) => ({ ...r, grant: r.grant.slice(0, 2) }), "wrong-grant"],
  ["a grant with appended bytes", (r) => ({ ...r, grant: `${r.grant.slice(0, 20)}${r.grant}` }), "wrong-grant"],
  ["a forged grant", (r) => granted(r, node), "wrong-grant"],
  ["the request of another node", (r) => granted(r, other, grants), "wrong-grant"],
  [
    "the request of another node, reported as broken",
    (r) => granted({ ...r, outcome: "broken", promptTokens: 0, completionTokens: 0 }, other, grants),
    "wrong-grant",
  ],
];

test.each(lies)(
  "%s: the record is not billed, and the other records of its batch are [A8]",
  async (_name, lie, reason) => {
    const agent = await rig.linked();
    const [before, honest, after] = [sent(), sent(), sent()];
    await deliver(agent, before, lie(honest), after);
    expect(await billed()).toEqual(linesOf(before, after));
    expect(await refused()).toBe(1);
    expect(logged).toMatchObject([{ node, reason }]);
    await deliver(agent, honest);
    expect(await billed()).toEqual(linesOf(before, honest, after));
  },
);

test("a grant that is used twice with other counts is billed once [A8]", async () => {
  const agent = await rig.linked();
  const honest = sent();
  await deliver(agent, honest);
  await deliver(agent, { ...honest, completionTokens: 30_000 }, honest);
  expect(await billed()).toEqual(linesOf(honest));
  expect(await refused()).toBe(0);
});

test("a node that refused a request and bills its grant is paid nothing, in either order [A8]", async () => {
  const agent = await rig.linked();
  const [early, late, beside] = [sent(), sent(), sent()];
  await deliver(agent, early);
  await ledger.declareVoid([early, late].map((record) => ({ ...record, node })));
  await deliver(agent, late, beside);
  const paid = (await billed()).filter((line) => !line.endsWith(" 0"));
  expect(paid).toEqual(linesOf(beside));
  const { rows } = await database.pool.query<{ credits: bigint }>(
    "select sum(credits)::bigint as credits from usage_totals where scope = 'account' and account_id = $1",
    [beside.accountId],
  );
  expect(rows[0]!.credits).toBe(30n * beside.factor);
});

test("the node of a request can bill it, even after another node tried to [A8]", async () => {
  const [liar, owner] = [await rig.linked(), await rig.linked(1, other)];
  const honest = sent({}, other);
  await deliver(liar, honest);
  expect(await billed()).toEqual([]);
  await deliver(owner, honest);
  expect(await billed()).toEqual(linesOf(honest));
});

test("a record with the maximum number of tokens is billed", async () => {
  const agent = await rig.linked();
  const whole = sent({ completionTokens: tokensMax - 10 });
  await deliver(agent, whole);
  expect(await billed()).toEqual(linesOf(whole));
});

test("the most expensive requests of a catalogue are billed, and totals can hold thousands of them", async () => {
  const agent = await rig.linked();
  const most = { tokensMax: 2 ** 29, promptTokens: 0, completionTokens: 2 ** 29, factor: millicredits(1_000_000n) };
  const dearest = [sent(most), sent(most)].map((record) =>
    granted({ ...record, accountId: idOf("a", 7) }, node, grants),
  );
  await deliver(agent, ...dearest);
  expect(await billed()).toEqual(linesOf(...dearest));
  const { rows } = await database.pool.query<{ credits: bigint }>(
    "select credits from usage_totals where scope = 'account' and account_id = $1",
    [idOf("a", 7)],
  );
  expect((rows[0]!.credits / 2n) * 17_000n).toBeLessThan(2n ** 63n);
});

test("grants are valid on every router of the database, and after a restart [A8]", async () => {
  const records = [sent(), sent()];
  const second = await openRouter(await server.openAgain(database));
  await deliver(await second.linked(), records[0]!);
  await rig[Symbol.asyncDispose]();
  const restarted = await openRouter(database);
  await deliver(await restarted.linked(2), records[1]!);
  expect(await billed()).toEqual(linesOf(...records));
  expect(await refused()).toBe(0);
});

test("a grant of another database is refused [A8]", async () => {
  const agent = await rig.linked();
  const foreign = await readGrants((await server.newDatabase()).pool);
  await deliver(agent, granted(sent(), node, foreign));
  expect(await billed()).toEqual([]);
});
