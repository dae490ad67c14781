/** Tests a router that loses its disk and is restored from a backup. Nothing is billed twice, and no revoked key works. */
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster, until, type Account } from "../cluster/cluster.ts";
import { askStream } from "../cluster/api-client.ts";
import { simNodes } from "../cluster/sim-node.ts";
import { dumpAllUsage, dumpUsage } from "../cluster/usage-dump.ts";

let cluster: Cluster;
let account: Account;

beforeAll(async () => {
  cluster = await Cluster.start(simNodes(["model-a"]));
  account = await cluster.account();
});
afterAll(() => cluster[Symbol.asyncDispose]());

interface Key {
  readonly id: string;
  readonly key: string;
}

async function makeKey(name: string, userId = account.userId): Promise<Key> {
  return (await cluster.weiche("key", "create", "--user", userId, "--name", name)) as Key;
}

async function ask(apiKey: string, times = 1): Promise<readonly number[]> {
  const question = { baseUrl: cluster.baseUrl, model: "model-a", text: "sim:tokens=3" };
  const answers = await Promise.all(Array.from({ length: times }, () => askStream({ ...question, apiKey })));
  return answers.map(({ status }) => status);
}

async function committed(records: number): Promise<void> {
  await until(`${records} records`, async () => (await dumpUsage(cluster)).length === records);
}

test("usage billed after the backup is billed again exactly once, and keys revoked after it stay revoked [G4]", async () => {
  const { apiKey } = account;
  const [revoked, regenerated] = [await makeKey("revoked"), await makeKey("regenerated")];
  const wish = ["--account", account.accountId, "--email", "b@example.com", "--role", "member"];
  const blocked = (await cluster.weiche("user", "create", ...wish)) as { readonly id: string };
  const blockedKey = await makeKey("of the blocked user", blocked.id);
  const [blockedAccount, deletedAccount] = [await cluster.account("Blocked"), await cluster.account("Deleted")];
  const unblockedAccount = await cluster.account("Unblocked");
  await cluster.weiche("account", "block", unblockedAccount.accountId);
  await ask(apiKey, 5);
  await ask(revoked.key, 2);
  await committed(7);
  const file = join(cluster.directory, "now.backup");
  const done = await cluster.weiche("backup", file);
  expect(done).toMatchObject({ file });
  expect(statSync(file).mode & 0o777).toBe(0o600);

  await ask(apiKey, 3);
  await ask(revoked.key);
  await cluster.weiche("key", "revoke", revoked.id);
  await cluster.weiche("key", "regenerate", regenerated.id);
  await cluster.weiche("user", "block", blocked.id);
  await cluster.weiche("account", "block", blockedAccount.accountId);
  await cluster.weiche("account", "unblock", unblockedAccount.accountId);
  await cluster.weiche("account", "delete", deletedAccount.accountId, "--yes");
  await committed(11);
  const before = await dumpAllUsage(cluster);

  await cluster.router.stop();
  const log = join(cluster.directory, "router.log");
  writeFileSync(log, cluster.router.output.join("\n"));
  rmSync(join(cluster.directory, "data/router"), { recursive: true });
  const restored = await cluster.weiche("restore", file, "--audit-log", log);
  // Blocks from shortly before the backup are also repeated, because clocks may differ.
  const accounts = { "account.block": 2, "account.unblock": 1, "account.delete": 1 };
  const repeated = { "key.revoke": 1, "key.regenerate": 1, "user.block": 1, ...accounts };
  expect(restored).toMatchObject({ repeated, lost: {} });

  await cluster.startRouter();
  await cluster.linked();
  await committed(11);
  const after = await dumpAllUsage(cluster);
  const sorted = (records: typeof after.records) => records.toSorted((a, b) => (a.requestId < b.requestId ? -1 : 1));
  expect(sorted(after.records)).toEqual(sorted(before.records));
  expect(after.totals).toEqual(expect.arrayContaining([...before.totals]));
  expect(after.days).toEqual(expect.arrayContaining([...before.days]));
  const statuses = [revoked.key, regenerated.key, blockedKey.key, apiKey].map(async (key) => (await ask(key))[0]);
  expect(await Promise.all(statuses)).toEqual([401, 401, 401, 200]);
  const ofAccounts = [blockedAccount, deletedAccount, unblockedAccount].map(
    async ({ apiKey: key }) => (await ask(key))[0],
  );
  expect(await Promise.all(ofAccounts)).toEqual([401, 401, 200]);
  expect(await cluster.weiche("audit", "verify")).toMatchObject({ broken: [] });
});

test("a restore is refused if accounts exist, and a damaged backup leaves nothing behind [G4]", async () => {
  const file = join(cluster.directory, "second.backup");
  await cluster.weiche("backup", file);
  expect(await cluster.weiche("restore", file, "--check")).toMatchObject({ version: "0.1.0" });
  await expect(cluster.weiche("backup", file)).rejects.toThrow("exists");
  await expect(cluster.weiche("restore", file)).rejects.toThrow(/another process.* uses the data directory/);
  await cluster.router.stop();
  await expect(cluster.weiche("restore", file)).rejects.toThrow("the database has accounts");
  const bytes = readFileSync(file);
  bytes[bytes.length >> 1]! ^= 1;
  const damaged = join(cluster.directory, "damaged.backup");
  writeFileSync(damaged, bytes);
  await expect(cluster.weiche("restore", damaged, "--check")).rejects.toThrow("the backup is damaged");
  rmSync(join(cluster.directory, "data/router"), { recursive: true });
  await expect(cluster.weiche("restore", damaged)).rejects.toThrow("the backup is damaged");
  expect(await cluster.weiche("restore", file)).toMatchObject({ lost: {} });
  await cluster.startRouter();
  await cluster.linked();
  expect(await ask(account.apiKey)).toEqual([200]);
});
