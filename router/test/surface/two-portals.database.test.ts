/** One person and two routers: every change at one router holds at the other. */
import { generateSync } from "otplib";
import { beforeEach, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7, type KeyId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { verifyAudit } from "../../src/rights/audit.ts";
import { createEvaluator } from "../../src/usage/evaluator.ts";
import { commitUsage } from "../../src/usage/usage-commit.ts";
import { makeUsageDays } from "../../src/usage/usage-days.ts";
import { password, tokenOf } from "../accounts/identity-rig.ts";
import { catalogue } from "../api/api-harness.ts";
import { testDatabases } from "../db/database-fixture.ts";
import { makeRecord } from "../usage/usage-records.ts";
import { startPortal, type Answer, type Person, type PortalRig } from "./portal-rig.ts";

const clock = new VirtualClock(Date.parse("2026-11-14T10:30:00Z"));
const server = await forThisFile(testDatabases());
const database = await server.newDatabase();
const given = { clock, registration: "open" } as const;
const one = await forThisFile(startPortal({ ...given, database }));
const other = await forThisFile(startPortal({ ...given, database: await server.openAgain(database) }));
let ada: Person;
let count = 0;

beforeEach(async () => {
  await one.database.pool.query("delete from attempts");
  const email = `ada${++count}@example.com`;
  const registered = await one.send("POST", "/registration", { accountName: "ACME", email, password });
  ada = await personOf(email, registered);
});

/** Shows the signed-in person at the other router. */
async function personOf(email: string, signedIn: Answer): Promise<Person> {
  const cookie = signedIn.headers.get("set-cookie")!.split(";")[0]!;
  const nobody = { id: asId<Person["id"]>(""), accountId: asId<Person["accountId"]>(""), email, cookie };
  const { user, account } = (await other.get("/session", nobody)).json;
  return { ...nobody, id: user.id, accountId: account.id };
}

const statusAt = async (portal: PortalRig, who: Person) => (await portal.get("/session", who)).status;
const signIn = (portal: PortalRig, more: object = {}) =>
  portal.send("POST", "/sign-in", { email: ada.email, password, ...more });

async function spend(credits: number): Promise<void> {
  const { id } = await one.accounts.keys.create(ada.id, { name: "batch" });
  await makeUsageDays(one.database.pool, [clock.now()]);
  const ids = {
    requestId: asId<never>(uuidv7(clock)),
    accountId: ada.accountId,
    userId: ada.id,
    keyId: asId<KeyId>(id),
  };
  const record = makeRecord(createRandom(1), clock.now(), {
    ...ids,
    promptTokens: credits,
    completionTokens: 0,
    factor: millicredits(1_000n),
  });
  await commitUsage(one.database.pool, [{ node: asId("gpu-1"), record }]);
}

/** One router made the quote. */
async function orderAtBoth(): Promise<void> {
  const wish = { action: "order", package: "Starter" };
  const { quoteId } = (await one.send("POST", "/package/quotes", wish, ada)).json;
  await Promise.all([one, other].map((portal) => portal.send("POST", "/package/changes", { ...wish, quoteId }, ada)));
}

test("a session of one router is valid at the other, and ends at both [R4]", async () => {
  expect([await statusAt(one, ada), await statusAt(other, ada)]).toEqual([200, 200]);
  const second = await personOf(ada.email, await signIn(other));
  await other.send("POST", "/sign-out", {}, second);
  expect([await statusAt(one, second), await statusAt(one, ada)]).toEqual([401, 200]);
  await other.send("POST", "/sign-out-everywhere", {}, ada);
  expect(await statusAt(one, ada)).toBe(401);
});

test("two routers together allow as many wrong passwords as one [R4]", async () => {
  let guesses = 0;
  for (; guesses < 50; guesses++) {
    const { status } = await signIn([one, other][guesses % 2]!, { password: "wrong wrong wrong" });
    if (status === 429) break;
    expect(status).toBe(401);
  }
  expect(guesses).toBe(8);
  expect((await signIn(one)).status).toBe(429);
});

test("a second factor can be set up at one router and confirmed at the other, and both accept a code only once [R4]", async () => {
  const { secret } = (await one.send("POST", "/totp/set-up", { password }, ada)).json;
  const codeNow = () => generateSync({ secret, epoch: Math.floor(clock.now() / 1000) });
  expect((await other.send("POST", "/totp/confirm", { code: codeNow() }, ada)).status).toBe(200);
  clock.advance(60_000);
  const code = codeNow();
  const statuses = await Promise.all([one, other].map(async (portal) => (await signIn(portal, { code })).status));
  expect(statuses.toSorted((a, b) => a - b)).toEqual([204, 401]);
});

test("an invitation from one router works at the other, once", async () => {
  const wish = { email: `ben${count}@example.com`, role: "member" };
  const { invitationUrl } = (await one.send("POST", "/users", wish, ada)).json;
  const join = (portal: PortalRig) => portal.send("POST", "/invitation", { token: tokenOf(invitationUrl), password });
  const statuses = await Promise.all([one, other].map(async (portal) => (await join(portal)).status));
  expect(statuses.filter((status) => status < 300)).toHaveLength(1);
});

test("a package that one router quotes and both order at once is charged once [R4]", async () => {
  await orderAtBoth();
  expect((await other.get("/package/invoice-lines", ada)).json).toMatchObject({ total: 1, totalCents: 700 });
});

test("two evaluations at once cause one notice each, and a notice read at one router is read at the other [R4]", async () => {
  await orderAtBoth();
  clock.advance(1_000);
  await spend(4_600_000);
  const evaluators = [one, other].map(({ database, accounts }) =>
    createEvaluator(
      database,
      clock,
      accounts.subscriptions,
      { creditsEvaluated() {} },
      { get: () => catalogue, changes: () => [] },
    ),
  );
  await Promise.all(evaluators.map((evaluator) => evaluator.evaluate()));
  const seen = async (portal: PortalRig) => (await portal.get("/notices", ada)).json;
  expect((await seen(other)).items.map(({ kind }: { kind: string }) => kind).toSorted()).toEqual([
    "quota-75",
    "quota-90",
  ]);
  // 90 % also says that 75 % are used.
  expect((await seen(one)).unread).toBe(1);
  await other.send("POST", "/notices/read", {}, ada);
  expect((await seen(one)).unread).toBe(0);
});

test("both routers can export the same usage at the same time", async () => {
  await spend(1_000);
  const exported = await Promise.all([one, other].map((portal) => portal.get("/usage.csv?by=day,model,key", ada)));
  expect(exported.map(({ status }) => status)).toEqual([200, 200]);
  expect(exported[0]!.text.split("\r\n")).toHaveLength(3);
  expect(exported[1]!.text).toBe(exported[0]!.text);
});

test("simultaneous actions at both routers form one chain of the audit log, which both show [R4]", async () => {
  const names = Array.from({ length: 20 }, (_, index) => `key ${index}`);
  await Promise.all(names.map((name, index) => [one, other][index % 2]!.send("POST", "/keys", { name }, ada)));
  expect(await verifyAudit(one.database, ada.accountId)).toMatchObject({ broken: [] });
  const shown = await Promise.all(
    [one, other].map(async (portal) => (await portal.get("/audit?pageSize=200", ada)).json),
  );
  expect(shown[0].items.filter(({ action }: { action: string }) => action === "key.create")).toHaveLength(names.length);
  expect(shown[1]).toEqual(shown[0]);
});
