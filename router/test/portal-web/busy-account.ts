/**
 * Makes an account like one in use for some weeks: people, keys in every state, usage, refusals, notices. For tests and
 * screenshots.
 */
import { asId, uuidv7, type KeyId, type UserId } from "@weiche/shared/ids.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { systemClock, type Clock } from "@weiche/shared/time/clock.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { commitUsage } from "../../src/usage/usage-commit.ts";
import { refusalCodes } from "../../src/usage/refusal-codes.ts";
import { makeUsageDays } from "../../src/usage/usage-days.ts";
import { models, type Person, type PortalRig } from "../surface/portal-rig.ts";
import { makeRecord } from "../usage/usage-records.ts";

const dayMs = 86_400_000;
const factors = [2_000n, 1_500n, 1_000n];

/** A clock that runs behind the system's by some milliseconds, because accounts need a past. */
export class ShiftedClock implements Clock {
  earlierMs = 0;
  now = () => systemClock.now() - this.earlierMs;
  monotonicMs = () => systemClock.monotonicMs();
  after: Clock["after"] = (delayMs, callback) => systemClock.after(delayMs, callback);
}

/** Returns the Owner, signed in. `clock`: the portal's. */
export async function fillAccount(portal: PortalRig, clock: ShiftedClock, name = "ACME GmbH"): Promise<Person> {
  clock.earlierMs = 20 * dayMs;
  const { email, ...owner } = await portal.newAccount(name, { package: "Pro" });
  clock.earlierMs = 0;
  const ada = await portal.signIn({ ...owner, email });
  const ben = await portal.newUser(ada, "admin");
  const cleo = await portal.newUser(ada, "member");
  const { keys, users } = portal.accounts;
  const inDays = (days: number) => clock.now() + days * dayMs;
  const wishes = [
    { of: ada, name: "ci" },
    { of: ada, name: "website chat", creditLimit: millicredits(12_000_000_000n), expiresMs: inDays(5) },
    { of: ben, name: "nightly batch", allowedModels: ["coder-next"], creditLimit: millicredits(9_000_000_000n) },
    { of: ben, name: "notebook", expiresMs: inDays(60) },
    { of: cleo, name: "support assistant", allowedModels: ["general-4-31b", "coder-next"] },
    { of: cleo, name: "old laptop" },
  ];
  const made: { readonly id: KeyId; readonly userId: UserId }[] = [];
  for (const { of, ...wish } of wishes) made.push({ id: (await keys.create(of.id, wish)).id, userId: of.id });
  await keys.revoke(made[5]!.id);
  await users.update(cleo.id, { creditLimit: millicredits(10_000_000_000n) });
  await users.create({ accountId: ada.accountId, email: "dora@example.com", role: "member" });
  await useForDays(portal, ada, made.slice(0, 5));
  await tell(portal, ada, made);
  // They have not joined by a link, so the database gets their passwords and names directly.
  for (const [name, { id }] of Object.entries({ ada, ben, cleo })) {
    await portal.database.pool.query("update users set email = $2 where id = $1", [id, `${name}@acme.example`]);
    await portal.database.pool.query(
      `insert into credentials (user_id, password, password_set_at, last_login_at)
       values ($1, '$argon2id$none', now() - interval '19 days', now() - interval '3 hours')`,
      [id],
    );
  }
  return { ...ada, email: "ada@acme.example" };
}

/** Adds unread notices, and refusals of the last hours. */
async function tell(
  { database: { pool } }: PortalRig,
  { accountId }: Person,
  keys: readonly { readonly id: KeyId; readonly userId: UserId }[],
): Promise<void> {
  const soon = new Date(Date.now() + 5 * dayMs).toISOString();
  const expiryOf = async (id: KeyId) =>
    (await pool.query("select expires_at as at from api_keys where id = $1", [id])).rows[0].at.toString();
  const factor = { model: "small-24b", from: "2.000", to: "2.000", coming: [{ validFrom: soon, factor: "1.500" }] };
  const text = { de: "small-24b wird günstiger.", en: "small-24b becomes cheaper." };
  for (const [kind, key, facts] of [
    ["key-expiring", keys[1]!.id, { expiresAt: await expiryOf(keys[1]!.id) }],
    ["model-change", null, { at: soon, text, models: ["small-24b"], news: [{ kind: "model-factor", facts: factor }] }],
  ] as const)
    await pool.query(
      `insert into notices (account_id, key_id, kind, event, facts, created_at)
       values ($1, $2, $3, 'one', $4, now() - interval '2 hours')`,
      [accountId, key, kind, JSON.stringify(facts)],
    );
  for (const [code, count] of [
    ["rate_limit_parallel", 41],
    ["context_window_exceeded", 3],
  ] as const) {
    await pool.query(`insert into unanswered_requests values ($1, $2, $3, $4, 'coder-next', $5, $6, 4, $7)`, [
      uuidv7(systemClock),
      accountId,
      keys[0]!.userId,
      keys[0]!.id,
      code,
      refusalCodes[code].status,
      count,
    ]);
    await pool.query(
      `insert into refusals (account_id, key_id, user_id, hour, code, count)
       values ($1, $2, $3, date_trunc('hour', now() - interval '1 hour'), $4, $5)`,
      [accountId, keys[0]!.id, keys[0]!.userId, code, count],
    );
  }
}

/** Adds some requests a day for three weeks, including each day of the current period. */
async function useForDays(
  { database }: PortalRig,
  { accountId }: Person,
  keys: readonly { readonly id: KeyId; readonly userId: UserId }[],
): Promise<void> {
  const random = createRandom(7);
  const nowMs = Date.now();
  const records = [];
  for (let day = 0; day < 20; day++) {
    for (let request = 0; request < 12; request++) {
      const atMs = nowMs - day * dayMs - random.below(6 * 3_600_000);
      const key = keys[random.below(keys.length)]!;
      const model = random.below(models.length);
      records.push(
        makeRecord(random, atMs, {
          requestId: asId(uuidv7({ now: () => atMs })),
          accountId,
          userId: key.userId,
          keyId: key.id,
          model: asId(models[model]!),
          factor: millicredits(factors[model]!),
          promptTokens: 20_000 + random.below(150_000),
          completionTokens: 2_000 + random.below(30_000),
        }),
      );
    }
  }
  await makeUsageDays(
    database.pool,
    Array.from({ length: 22 }, (_, day) => nowMs - day * dayMs),
  );
  await commitUsage(
    database.pool,
    records.map((record) => ({ node: asId("node-1"), record })),
  );
}
