import { join } from "node:path";
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { loadRouterConfig } from "../../src/config/config.ts";
import { createRouter, type Router } from "../../src/context.ts";
import { temporaryFolder } from "../db/database-fixture.ts";
import { bootId, helloOf, LinkClient } from "../nodes/link-client.ts";
import { runWeiche } from "./run-weiche.ts";

const folder = temporaryFolder();
let router: Router;

beforeAll(async () => {
  writeFileSync(
    join(folder.path, "router.yaml"),
    `catalogue: ${join(import.meta.dirname, "../../../deploy/catalogue.yaml")}
dataDir: data
listen: { api: "127.0.0.1:0", portal: "127.0.0.1:0", console: off, nodes: "127.0.0.1:0", data: "127.0.0.1:0", ops: "127.0.0.1:0" }
credits: { evaluateSeconds: 1 }
logLevel: fatal
shutdownAcceptSeconds: 0
`,
  );
  router = await createRouter(loadRouterConfig(join(folder.path, "router.yaml"), {}));
});
afterAll(async () => {
  await router.close();
  folder[Symbol.dispose]();
});

const weiche = (...args: string[]) => runWeiche(["--data-dir", join(folder.path, "data"), ...args]);

async function json<T = Record<string, unknown>>(...args: string[]): Promise<T> {
  const { code, out, error } = await weiche(...args, "--json");
  expect([code, error]).toEqual([0, ""]);
  return JSON.parse(out) as T;
}

test("an operator tries, orders, downgrades and cancels packages, and finds each change in invoice and audit log", async () => {
  const { id } = await json<{ id: string }>("account", "create", "--name", "ACME", "--owner-email", "a@example.com");
  const subscription = (action: string, ...more: string[]) => json("subscription", action, "--account", id, ...more);
  expect(await subscription("trial")).toMatchObject({ state: "trial", package: "Starter", pending: null });

  const upgrade = ["--package", "business"];
  const quote = await subscription("preview", "--action", "upgrade", ...upgrade);
  expect(quote).toMatchObject({ dueCents: 12_900, thenCents: 12_900, after: { package: "Business", state: "active" } });
  const wrong = await weiche(
    "subscription",
    "upgrade",
    "--account",
    id,
    "--package",
    "Pro",
    "--quote",
    String(quote["quoteId"]),
  );
  expect([wrong.code, wrong.error]).toEqual([1, "weiche: the price has changed: 35.00 EUR net is due now\n"]);
  const ordered = await subscription("upgrade", ...upgrade, "--quote", String(quote["quoteId"]));
  expect(ordered).toMatchObject({ state: "active", package: "Business" });

  expect(await subscription("downgrade", "--package", "Starter")).toMatchObject({
    package: "Business",
    pending: { change: "downgrade", package: "Starter", at: ordered["periodEnd"] },
  });
  expect(await subscription("withdraw")).toMatchObject({ pending: null });
  const cancelled = await subscription("cancel");
  expect(cancelled).toMatchObject({ pending: { change: "cancellation", package: null } });
  expect(await subscription("show")).toEqual(cancelled);
  expect(await json("subscription", "invoice", "--account", id)).toMatchObject([
    { reason: "package", package: "Business", amountCents: 12_900 },
  ]);
  expect(await json("credits", "evaluate")).toEqual({ charged: 0, invoiced: 0, accounts: 0, changed: 0, notices: 0 });

  const audit = await json<{ action: string; result: string }[]>("audit", "--account", id, "--limit", "3");
  expect(audit.map(({ action }) => action)).toEqual([
    "subscription.cancel",
    "subscription.withdraw",
    "subscription.downgrade",
  ]);
  expect(await json("audit", "verify")).toEqual({ chains: 1, entries: 7, broken: [] });
  expect((await weiche("audit", "verify", "--account", id)).out).toBe("7 entries in 1 chain, 0 broken\n");
});

test("an operator searches the audit log by person, object, action and time", async () => {
  const { id, ownerUserId } = await json(
    "account",
    "create",
    "--name",
    "C",
    "--owner-email",
    "c@c.de",
    "--package",
    "Pro",
    "--yes",
  );
  const { id: keyId } = await json("key", "create", "--user", String(ownerUserId), "--name", "ci");
  await json("key", "revoke", String(keyId));
  const audit = (...filter: string[]) => json<{ number: number }[]>("audit", "--account", String(id), ...filter);
  const numbers = async (...filter: string[]) => (await audit(...filter)).map(({ number }) => number);
  expect(await audit("--action", "key.revoke")).toMatchObject([
    { number: 3, actor: "operator", actorName: null, object: `key ${String(keyId)}`, objectName: "ci" },
  ]);
  expect(await numbers("--object", String(keyId))).toEqual([3, 2]);
  expect(await numbers("--actor", "operator", "--limit", "2")).toEqual([3, 2]);
  expect(await numbers("--actor", String(ownerUserId))).toEqual([]);
  expect(await numbers("--before", "2")).toEqual([1]);
  const [{ at }] = (await audit("--before", "2")) as unknown as [{ at: string }];
  expect(await numbers("--until", at)).toEqual([]);
  expect((await numbers("--since", at)).at(-1)).toBe(1);
  const day = Temporal.Instant.from(at).toZonedDateTimeISO("Europe/Berlin").toPlainDate();
  expect((await numbers("--since", day.toString(), "--until", day.toString())).at(-1)).toBe(1);
  expect(await numbers("--until", day.subtract({ days: 1 }).toString())).toEqual([]);
  const { out } = await weiche("audit", "--account", String(id), "--limit", "2");
  expect(out).toMatch(/ key\.revoke +key \S+ \(ci\) +done /);
  expect(out).toMatch(/\n\nOlder entries: --before 2\n$/);
});

test("an operator lists an account's notices and refusals, and prints its usage as CSV", async () => {
  const { id, ownerUserId } = await json(
    "account",
    "create",
    "--name",
    "B",
    "--owner-email",
    "b@b.de",
    "--package",
    "Pro",
    "--yes",
  );
  const create = ["key", "create", "--user", String(ownerUserId), "--name"];
  const { key } = await json(...create, "ci");
  await json(...create, "nothing left", "--credit-limit", "0");
  await json("credits", "evaluate");
  expect(await json("notices", "--account", String(id))).toMatchObject([
    { kind: "key-limit", key: { name: "nothing left" }, facts: { limit: "0.000" } },
  ]);
  expect((await weiche("notices", "--account", String(id))).out).toMatch(/key-limit +b@b\.de +nothing left/);

  const answer = await fetch(`http://${router.listen.api}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${String(key)}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "small-24b", messages: [{ role: "user", content: "Hello" }] }),
  });
  expect(answer.status).toBe(503);
  const refusals = async () => (await json<{ codes: object[] }>("refusals", "--account", String(id))).codes;
  await expect
    .poll(refusals, { timeout: 20_000 })
    .toMatchObject([{ code: "no_node_available", status: 503, count: 1 }]);
  expect((await weiche("refusals", "--account", String(id))).out).toMatch(/no_node_available +503 +1 +retry-later/);

  const csv = await weiche("usage", "--account", String(id), "--by", "key", "--csv");
  expect(csv.out).toBe("key,name,requests,promptTokens,completionTokens,totalTokens,credits,estimatedTokens\r\n");
});

test("a command exits with 2 for wrong usage and with 1 for a refusal", async () => {
  expect((await weiche("audit")).code).toBe(2);
  expect((await weiche("subscription", "order", "--account", "x")).code).toBe(2);
  expect((await weiche("subscription", "preview", "--account", "x", "--action", "steal")).code).toBe(2);
  const nobody = "00000000-0000-7000-8000-000000000000";
  const refused = await weiche("subscription", "order", "--account", nobody, "--package", "Pro");
  expect(refused).toEqual({ code: 1, out: "", error: `weiche: there is no account ${nobody}\n` });
});

test("an operator lists usage records that were set aside: those no router has signed, and unreadable ones", async () => {
  const client = new LinkClient(Number(router.listen.nodes.split(":").at(-1)));
  const requestId = "0190f3c5-7a00-7000-8000-000000000001";
  const ids = { account_id: requestId, user_id: requestId, key_id: requestId, model: "general-4-31b" };
  const counts = { factor_millicredits: "1500", prompt_tokens: 7, completion_tokens: 11, source: 1, outcome: 1 };
  const record = { ...ids, ...counts, request_id: requestId, attempt: 1, duration_ms: 5 };
  client.say(helloOf("gpu-1", bootId(1)));
  await client.welcomed;
  client.say({ usage_batch: { batch_id: 1, records: [record, { ...record, attempt: 0 }] } });
  await expect.poll(() => client.received.some(({ usage_ack }) => usage_ack)).toBe(true);
  client[Symbol.dispose]();

  const refused = await json<object[]>("usage", "refused");
  expect(refused).toHaveLength(2);
  const said = { node: "gpu-1", requestId, accountId: requestId, promptTokens: "7", completionTokens: "11" };
  expect(refused).toContainEqual(expect.objectContaining({ ...said, attempt: 1, reason: "too-old" }));
  expect(refused).toContainEqual(
    expect.objectContaining({ ...said, attempt: 0, reason: "unreadable", detail: "attempt is out of range" }),
  );
  expect(await json("usage", "refused", "--node", "gpu-2")).toEqual([]);
  expect((await weiche("usage", "refused", "--limit", "1")).out).toMatch(/NODE [^]*gpu-1 /);
  expect((await weiche("usage")).code).toBe(2);
});

test("an operator renames, blocks, unblocks and deletes an account by its name, and sees what is deleted and what is kept", async () => {
  const wish = ["--name", "Life", "--owner-email", "life@example.com", "--package", "Pro", "--yes"];
  const { id, ownerUserId } = await json<{ id: string; ownerUserId: string }>("account", "create", ...wish);
  await json("key", "create", "--user", ownerUserId, "--name", "ci");
  expect(await json("account", "rename", "life", "New Life")).toMatchObject({ id, name: "New Life" });
  const blocked = await json("account", "block", "new life");
  expect(blocked).toMatchObject({ id, package: "Pro", blockedAt: expect.any(String) as string });
  expect(await json("account", "unblock", id.slice(0, 35))).toMatchObject({ id, blockedAt: null });
  expect(await json("key", "list", "--account", "New Life")).toMatchObject([{ name: "ci", state: "active" }]);

  const asked = await weiche("account", "delete", "New Life");
  expect([asked.code, asked.out]).toEqual([1, ""]);
  expect(asked.error).toBe(`New Life (${id})
would be deleted: 1 user with addresses and sign-ins, 0 sessions, 1 invitation, 0 notices, the names of the account and its keys; 1 key is revoked, the package ends
would be kept: 0 invoices with name and address, 1 invoice line of 35.00 EUR net (35.00 EUR without an invoice yet), usage totals of 0 requests, 5 entries of the audit log
weiche: nothing was deleted: add --yes to delete the account permanently
`);
  const done = await weiche("account", "delete", "New Life", "--yes");
  expect([done.code, done.error]).toEqual([0, ""]);
  expect(done.out).toContain(`${id} is deleted.\ndeleted: 1 user with`);
  expect(await json("account", "list", "--deleted")).toMatchObject([{ id, name: "deleted", state: "no package" }]);
  expect(await json("subscription", "invoice", "--account", id)).toMatchObject([{ amountCents: 3_500 }]);
  const again = await weiche("account", "delete", id, "--yes");
  expect([again.code, again.error]).toEqual([1, `weiche: there is no account ${id}\n`]);
  expect(await json("audit", "verify", "--account", id)).toMatchObject({ broken: [] });
});
