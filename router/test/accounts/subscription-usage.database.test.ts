import { describe, expect, test } from "vitest";
import { asId, uuidv7 } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { commitUsage } from "../../src/usage/usage-commit.ts";
import { makeUsageDays } from "../../src/usage/usage-days.ts";
import { makeRecord } from "../usage/usage-records.ts";
import {
  accountId,
  accountPerTest,
  accounts,
  begin,
  berlin,
  clock,
  database,
  until,
  userId,
} from "./subscriptions-rig.ts";

await accountPerTest();

/** Books credits of usage with the key now. */
async function spend(keyId: string, tokens: number): Promise<void> {
  await makeUsageDays(database.pool, [clock.now()]);
  const identity = { accountId, userId, keyId: asId<ReturnType<typeof makeRecord>["keyId"]>(keyId), model: asId("m") };
  const record = makeRecord(createRandom(1), clock.now(), {
    ...identity,
    requestId: asId(uuidv7(clock)),
    promptTokens: tokens,
    completionTokens: 0,
    factor: 1000n as never,
  } as never);
  await commitUsage(database.pool, [{ node: asId("n"), record }]);
}

async function spentByPeriod(): Promise<Record<string, bigint>> {
  const { rows } = await database.pool.query<{ start: string; credits: bigint }>(
    `select to_char(period_start at time zone 'Europe/Berlin', 'YYYY-MM-DD HH24:MI') as start, credits
     from usage_totals where account_id = $1 and scope = 'account' order by 1`,
    [accountId],
  );
  return Object.fromEntries(rows.map(({ start, credits }) => [start, credits / 1000n]));
}

describe("usage", () => {
  test("stays in the same period after an upgrade, and begins at zero after a trial", async () => {
    const { id } = await accounts.keys.create(userId, { name: "ci" });
    await accounts.subscriptions.change(accountId, { action: "trial" });
    await spend(id, 100);
    until("2026-11-20T12:00");
    await accounts.subscriptions.change(accountId, { action: "order", package: "Pro" });
    await spend(id, 20);
    until("2026-12-19T12:00");
    await accounts.subscriptions.change(accountId, { action: "upgrade", package: "Business" });
    await spend(id, 3);
    until("2026-12-20T00:00");
    await spend(id, 4);
    expect(await spentByPeriod()).toEqual({
      "2026-11-14 10:30": 100n,
      "2026-11-20 12:00": 23n,
      "2026-12-20 00:00": 4n,
    });
  });

  test("of a trial is in one period, even over a month shorter than 30 days", async () => {
    await begin(berlin("2026-02-10T12:00"));
    const { id } = await accounts.keys.create(userId, { name: "ci" });
    await accounts.subscriptions.change(accountId, { action: "trial" });
    await spend(id, 1);
    until("2026-03-11T12:00");
    await spend(id, 2);
    until("2026-03-12T00:00");
    await spend(id, 4);
    expect(await spentByPeriod()).toEqual({ "2026-02-10 12:00": 3n, "2026-03-12 00:00": 4n });
  });

  test("beyond the old quota is allowed at once after an upgrade; limits of keys and users last until the period ends [S16.6]", async () => {
    const { id } = await accounts.keys.create(userId, { name: "ci" });
    const stop = async () => {
      await database.pool.query("update accounts set exhausted_until = 'epoch' where id = $1", [accountId]);
      await database.pool.query("update users set limit_reached_until = 'epoch' where id = $1", [userId]);
      await database.pool.query("update api_keys set limit_reached_until = 'epoch' where id = $1", [id]);
    };
    const stopped = async () =>
      (
        await database.pool.query(
          `select exhausted_until is not null as account, u.limit_reached_until is not null as user,
             k.limit_reached_until is not null as key
           from accounts a join users u on u.account_id = a.id join api_keys k on k.account_id = a.id where a.id = $1`,
          [accountId],
        )
      ).rows[0] as unknown;
    await accounts.subscriptions.change(accountId, { action: "trial" });
    await stop();
    await accounts.subscriptions.change(accountId, { action: "upgrade", package: "Pro" });
    expect(await stopped()).toEqual({ account: false, user: false, key: false });
    await stop();
    await accounts.subscriptions.change(accountId, { action: "downgrade", package: "Starter" });
    expect(await stopped()).toEqual({ account: true, user: true, key: true });
    await accounts.subscriptions.change(accountId, { action: "upgrade", package: "Business" });
    expect(await stopped()).toEqual({ account: false, user: true, key: true });
  });
});
