import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import { readUsageTrace } from "../../src/simulate/loads/usage-trace.ts";
import { temporaryFolder } from "../db/database-fixture.ts";
import { grantedNode, makeRecord } from "../usage/usage-records.ts";
import { startAdmin } from "./admin-rig.ts";

const admin = await forThisFile(startAdmin());

test("an operator creates an account, users and keys, and sees the usage of a key", async () => {
  const account = await admin.json<Record<string, string>>(
    "account",
    "create",
    "--name",
    "ACME",
    "--owner-email",
    "ada@example.com",
    "--package",
    "starter",
    "--yes",
  );
  expect(account).toMatchObject({
    name: "ACME",
    package: "Starter",
    state: "active",
    invitationUrl: expect.stringMatching(/^https:\/\/portal\.example\/invitation#/) as string,
  });
  const { id, ownerUserId } = account as { id: string; ownerUserId: string };
  expect(await admin.json<unknown[]>("account", "list")).toMatchObject([{ id, ownerUserId }]);
  expect(await admin.json("account", "show", id)).toMatchObject({ id, users: [{ id: ownerUserId, role: "owner" }] });

  const user = await admin.json(
    "user",
    "create",
    "--account",
    id,
    "--email",
    "ben@example.com",
    "--role",
    "member",
    "--model",
    "tiny-chat",
    "--model",
    "tiny-embed",
  );
  expect(user).toMatchObject({ role: "member", allowedModels: ["tiny-chat", "tiny-embed"], creditLimit: null });
  const userId = user["id"] as string;
  expect(await admin.json("user", "update", userId, "--credit-limit", "0.5", "--all-models")).toMatchObject({
    allowedModels: null,
    creditLimit: "0.500",
  });
  expect(await admin.json("user", "update", userId, "--no-credit-limit")).toMatchObject({ creditLimit: null });
  expect(await admin.json("user", "block", userId)).toMatchObject({ id: userId, blocked: true });
  expect(await admin.json("user", "unblock", userId)).toMatchObject({ id: userId, blocked: false });
  expect(await admin.json("user", "update", userId, "--role", "admin")).toMatchObject({ role: "admin" });

  const created = await admin.json<Record<string, string>>(
    "key",
    "create",
    "--user",
    userId,
    "--name",
    "ci",
    "--expires",
    "2099-01-31T18:00:00+01:00",
  );
  expect(created).toMatchObject({
    state: "active",
    key: expect.stringMatching(/^sk-weiche-/) as string,
    expiresAt: "2099-01-31T17:00:00Z",
  });
  const keyId = created["id"]!;
  expect(
    await admin.json("key", "update", keyId, "--name", "cd", "--no-expires", "--model", "tiny-chat"),
  ).toMatchObject({
    name: "cd",
    expiresAt: null,
    allowedModels: ["tiny-chat"],
  });
  await admin.record(id, keyId);
  const sums = { requests: 1, promptTokens: 40, completionTokens: 21, totalTokens: 61, credits: "61.000" };
  expect(await admin.json("usage", "--account", id)).toMatchObject({ totals: sums, rows: [sums] });
  expect(
    await admin.json("usage", "--account", id, "--by", "key", "--from", "2026-01-01", "--to", "2099-01-01"),
  ).toMatchObject({ totals: sums, rows: [{ ...sums, key: keyId, name: "cd" }] });

  const fresh = await admin.json<Record<string, string>>("key", "regenerate", keyId);
  expect(fresh["key"]).not.toBe(created["key"]);
  expect(await admin.json("key", "revoke", fresh["id"]!)).toMatchObject({ state: "revoked" });
  const list = await admin.weiche(["key", "list", "--user", userId, "--json"]);
  expect(JSON.parse(list.out)).toMatchObject([{ id: keyId, state: "revoked" }, { state: "revoked" }]);
  expect(list.out).not.toContain("sk-weiche-");
  expect(admin.failures).toEqual([]);
});

describe("an account that used some of its credits", () => {
  let id: string;
  let owner: string;
  let used: Record<string, string>;
  beforeAll(async () => {
    const wish = ["--name", "Used", "--owner-email", "used@example.com", "--package", "starter", "--yes"];
    const account = await admin.json<{ id: string; ownerUserId: string }>("account", "create", ...wish);
    [id, owner] = [account.id, account.ownerUserId];
    const create = (name: string, ...more: string[]) =>
      admin.json<Record<string, string>>("key", "create", "--user", owner, "--name", name, ...more);
    used = await create("first", "--credit-limit", "100");
    await admin.json("key", "revoke", (await create("never used"))["id"]!);
    await admin.record(id, used["id"]!, owner);
    await admin.record(id, owner); // in the playground
  });

  test("shows the remaining credits, and the use of each user, key, model and playground", async () => {
    const credits = await admin.json<object>("credits", "show", id);
    expect(credits).toMatchObject({
      package: "Starter",
      quota: "5000000.000",
      used: "122.000",
      remaining: "4999878.000",
      exhaustedUntil: null,
      rate: { lastMinute: 0, perMinute: 30, parallel: 0, parallelMax: 5 },
      users: [{ id: owner, email: "used@example.com", used: "122.000", limit: null, limitReached: false }],
      keys: [
        { id: used["id"], name: "first", user: "used@example.com", used: "61.000", limit: "100.000", reason: null },
        { name: "playground of used@example.com", user: null, used: "61.000", limit: null },
      ],
      models: [{ requests: 2, credits: "122.000" }],
    });
    expect(credits).not.toHaveProperty("own");
    const { out } = await admin.weiche(["credits", "show", id]);
    expect(out).toMatch(/^quota +5000000\.000\nused +122\.000\nremaining +4999878\.000$/m);
    expect(out).toMatch(/^rate +0 of 30 requests in the last minute, 0 of 5 at once$/m);
    expect(out).toMatch(/^first +used@example\.com +61\.000 +100\.000 +– /m);
  });

  test("lists its keys and users with their use, and the reason why some are not usable", async () => {
    const ofUser = await admin.json<object[]>("key", "list", "--user", owner);
    const first = { id: used["id"], name: "first", state: "active", reason: null, creditsUsed: "61.000" };
    expect(ofUser).toMatchObject([first, { name: "never used", state: "revoked", reason: "revoked" }]);
    const ben = await admin.accounts.users.create({
      accountId: asId(id),
      email: "ben.used@example.com",
      role: "member",
    });
    const { id: bens } = await admin.accounts.keys.create(ben.id, { name: "of Ben" });
    expect(await admin.json("key", "list", "--account", id)).toMatchObject([...ofUser, { id: bens }]);
    expect(await admin.json("key", "list", "--user", owner)).toEqual(ofUser);
    expect(await admin.json("key", "show", bens)).toMatchObject({ name: "of Ben", userEmail: "ben.used@example.com" });
    expect(await admin.json("key", "show", used["id"]!)).toMatchObject({
      ...{ ...first, accountId: id, userEmail: "used@example.com", creditLimit: "100.000" },
      binding: { by: "key", limit: "100.000", left: "39.000" },
      lastUsedAt: expect.stringMatching(/^20/) as string,
    });
    const person = { id: owner, accountId: id, role: "owner", creditsUsed: "122.000", keys: 1 };
    expect(await admin.json("user", "list", "--account", id)).toMatchObject([person, { id: ben.id }]);
    expect(await admin.json("user", "show", ben.id)).toMatchObject({ id: ben.id, role: "member", state: "invited" });

    await admin.json("user", "block", owner);
    expect(await admin.json("user", "show", owner)).toMatchObject({ ...person, state: "blocked", reason: "blocked" });
    expect((await admin.weiche(["key", "list", "--account", id])).out).toMatch(
      /^ID +NAME +USER EMAIL +STATE +REASON .*\n.*\n.* first +used@example\.com +user-blocked +user-blocked /,
    );
    expect((await admin.weiche(["key", "show", used["id"]!])).out).toMatch(
      /^binding +by key used 61\.000 .*left 39\.000$/m,
    );
    await admin.json("user", "unblock", owner);
  });

  test("lists the actions on it with their actors", async () => {
    const origin = { actor: owner, source: "192.0.2.7" };
    await admin.accounts.as(origin).keys.create(asId(owner), { name: "by herself" });
    const { out } = await admin.weiche(["audit", "--account", id, "--actor", owner]);
    expect(out).toMatch(/\n *\d+ +\S+ +used@example\.com +192\.0\.2\.7 +key\.create +key \S+ \(by herself\) +done /);
  });

  test("has no quota without a package", async () => {
    const bare = await admin.json<{ id: string; ownerUserId: string }>(
      "account",
      "create",
      "--name",
      "Bare",
      "--owner-email",
      "bare@example.com",
    );
    await admin.record(bare.id, bare.ownerUserId);
    expect(await admin.json("credits", "show", bare.id)).toMatchObject({
      package: null,
      quota: null,
      used: null,
      models: [],
    });
    expect((await admin.weiche(["credits", "show", bare.id])).out).toMatch(/^package +none$/m);
  });
});

test("an exported trace has each request once, without content or ids, and the command that checks traces reads it", async () => {
  const nowMs = Date.now();
  const accountId = crypto.randomUUID();
  const sent = (minutesAgo: number, more: object) =>
    makeRecord(createRandom(minutesAgo), nowMs - minutesAgo * 60_000, {
      ...{ accountId: asId(accountId), model: asId<ModelId>("traced"), promptTokens: 40, completionTokens: 2 },
      ...more,
    });
  const first = sent(9, { outcome: "broken", promptTokens: 0, completionTokens: 0 });
  await admin.ledger.record(grantedNode, [
    ...[sent(8, {}), first, sent(9, { requestId: first.requestId, attempt: 2, completionTokens: 7 })],
  ]);

  using folder = temporaryFolder();
  const file = join(folder.path, "trace.jsonl");
  const { out, error, code } = await admin.weiche(["usage", "export", "--trace"]);
  expect([code, error]).toEqual([0, ""]);
  const lines = out.split("\n").filter((line) => line.includes('"traced"'));
  expect(lines.map((line) => Object.keys(JSON.parse(line) as object).join())).toEqual(
    Array<string>(2).fill("at,account,model,inputTokens,outputTokens"),
  );
  expect(out).not.toContain(accountId);
  writeFileSync(file, lines.join("\n"));
  expect(await admin.json("usage", "trace", file)).toMatchObject({
    ...{ requests: 2, seconds: 60, accounts: 1, failed: 0, assumed: [] },
    models: [{ model: "traced", input: { mean: 40 }, output: { mean: 4.5 } }],
  });

  const again = await admin.weiche(["usage", "export", "--trace"]);
  expect(again.out.split("\n").filter((line) => lines.includes(line))).toEqual([]);
  const early = ["--from", "2020-01-01", "--to", "2020-01-31"];
  expect(await admin.weiche(["usage", "export", "--trace", ...early])).toMatchObject({ code: 0, out: "" });
  const page = { fromMs: nowMs - 540_000, toMs: nowMs };
  const one = await readUsageTrace(admin.database.pool, page, 1);
  const two = await readUsageTrace(admin.database.pool, { ...page, after: one.after! }, 1);
  expect([...one.items, ...two.items].map(({ outputTokens }) => outputTokens)).toEqual([7, 2]);
  expect(await admin.weiche(["usage", "export"])).toMatchObject({ code: 2 });
  writeFileSync(file, `${lines[1]}\n${lines[0]}`);
  expect(await admin.weiche(["usage", "trace", file])).toMatchObject({
    code: 1,
    error: `weiche: ${file}:2: the time goes back by 60 s: sort the lines by time\n`,
  });
});
