import { beforeEach, describe, expect, test } from "vitest";
import { asId, uuidv7, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import { accountNamed } from "../../src/accounts/named.ts";
import { verifyAudit } from "../../src/rights/audit.ts";
import { RequestError } from "../../src/rights/request-error.ts";
import { here, identityRigOfFile, password, elsewhere, tokenOf } from "./identity-rig.ts";
import { auditOf, keysOf } from "./whole-lists.ts";

const { rig, address } = identityRigOfFile({ mail: true });
const ofOperator = "this account is blocked. The operator of this service can change that";
let accountId: AccountId;
let userId: UserId;
let email: string;

beforeEach(async () => {
  await rig.database.pool.query("delete from attempts");
  rig.logins.length = 0;
  email = address("ada");
  ({ accountId, userId } = await rig.newAccount(email));
});

const signIn = (from = here, typed = password) => rig.identity.login.signIn({ email, password: typed }, from);

async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => new Error("it was not refused"),
    (reason: unknown) => reason,
  );
  if (!(error instanceof RequestError)) throw error;
  return `${error.kind}: ${error.message}`;
}

async function actions(): Promise<readonly string[]> {
  return (await auditOf(rig.database, accountId)).map(({ action, actor, result }) => `${action} ${actor} ${result}`);
}

async function count(table: string, where = "true"): Promise<number> {
  const { rows } = await rig.database.pool.query<{ n: bigint }>(`select count(*) as n from ${table} where ${where}`);
  return Number(rows[0]!.n);
}

test("renaming an account is logged without the name", async () => {
  await rig.accounts.life.rename(accountId, " Müller & Söhne ");
  expect(await rig.accounts.show(accountId)).toMatchObject({ name: "Müller & Söhne" });
  const [entry] = await auditOf(rig.database, accountId);
  expect(entry).toMatchObject({ action: "account.rename", actor: "operator", result: "done", details: {} });
});

describe("a blocked account", () => {
  test("refuses its sessions and sign-ins as account-blocked; unblocking ends the old sessions and allows new ones", async () => {
    const outcome = await signIn();
    if (outcome.kind !== "signed-in") throw new Error(outcome.kind);
    const { sessions } = rig.identity;
    await rig.accounts.life.setBlocked(accountId, true);
    expect(await sessions.find(outcome.token)).toMatchObject({ accountBlocked: true });
    expect(await rig.accounts.show(accountId)).toMatchObject({
      blockedAt: new Date(rig.clock.now()).toISOString().replace(".000", ""),
    });

    expect(await signIn()).toEqual({ kind: "account-blocked" });
    expect(await signIn(here, "a wrong password")).toEqual({ kind: "wrong" });
    expect(rig.logins.slice(-2)).toEqual(["account-blocked", "wrong"]);

    await rig.accounts.life.setBlocked(accountId, false);
    expect(await sessions.find(outcome.token)).toBeUndefined();
    expect(await signIn()).toMatchObject({ kind: "signed-in" });
    expect((await actions()).slice(0, 5)).toEqual([
      `session.start ${userId} done`,
      "account.unblock operator done",
      `session.start ${userId} refused: account_blocked`,
      "account.block operator done",
      `session.start ${userId} done`,
    ]);
  });

  test("does not let users accept invitations until it is unblocked", async () => {
    const { invitationUrl } = await rig.accounts.users.create({ accountId, email: address("ben"), role: "member" });
    const accept = () => rig.identity.invitations.accept({ token: tokenOf(invitationUrl), password }, here);
    await rig.accounts.life.setBlocked(accountId, true);
    expect(await refusal(accept())).toBe(`account_blocked: ${ofOperator}`);
    await rig.accounts.life.setBlocked(accountId, false);
    expect(await accept()).toMatchObject({ session: { user: { role: "member" } } });
  });

  test("keeps its package, its charges and the states of its keys", async () => {
    await rig.accounts.subscriptions.change(accountId, { action: "order", package: "Pro" });
    const { id } = await rig.accounts.keys.create(userId, { name: "ci" });
    await rig.accounts.life.setBlocked(accountId, true);
    expect((await keysOf(rig.database, userId, rig.clock.now()))[0]).toMatchObject({ id, reason: "account-blocked" });
    rig.clock.advance(32 * 86_400_000);
    expect(await rig.accounts.subscriptions.chargeWhatIsDue()).toBeGreaterThan(0);
    expect(await rig.accounts.subscriptions.invoice(accountId)).toHaveLength(2);
    await rig.accounts.life.setBlocked(accountId, false);
    expect((await keysOf(rig.database, userId, rig.clock.now()))[0]).toMatchObject({ state: "active", reason: null });
  });

  test("keeps the time of its first block when it is blocked again", async () => {
    await rig.accounts.life.setBlocked(accountId, true);
    const { blockedAt } = await rig.accounts.show(accountId);
    rig.clock.advance(1_000);
    await rig.accounts.life.setBlocked(accountId, true);
    expect(await rig.accounts.show(accountId)).toMatchObject({ blockedAt });
  });
});

describe("a deleted account", () => {
  test("keeps invoices and usage, and nothing that identifies its people", async () => {
    const secrets = [email, address("ben"), "Secret & Sons", "a telling key"];
    await rig.accounts.life.rename(accountId, secrets[2]!);
    const benId = await rig.newUser(accountId, secrets[1]!);
    await rig.accounts.users.create({ accountId, email: address("never"), role: "member" });
    await rig.accounts.subscriptions.change(accountId, { action: "order", package: "Pro" });
    await rig.accounts.subscriptions.change(accountId, { action: "cancel" });
    const { id } = await rig.accounts.keys.create(benId, { name: secrets[3]! });
    await rig.database.pool.query("insert into key_uses values ($1, now())", [id]);
    for (const [scope, subject] of [
      ["account", accountId],
      ["key", id],
    ]) {
      const values = [accountId, scope, subject];
      await rig.database.pool.query("insert into usage_totals values ($1, now(), $2, $3, 7, 1, 1, 1000)", values);
    }
    await signIn(here);
    await signIn(elsewhere);
    await signIn(elsewhere, "a wrong password");
    await rig.identity.passwords.requestReset(email, here.source);
    await rig.accounts
      .as({ actor: userId, source: here.source })
      .users.create({ accountId, email: address("eve"), role: "member" });
    await rig.identity.invitations.count(accountId, here.source);
    const ofOthers = await rig.newAccount(address("other"));
    await rig.identity.login.signIn({ email: address("other"), password: "a wrong password" }, here);
    const invoice = await rig.accounts.subscriptions.invoice(accountId);

    const counts = await rig.accounts.life.deletion(accountId);
    expect(counts).toMatchObject({
      goes: { users: 4, keys: 1, sessions: 4, invitations: 4 },
      stays: { invoiceLines: 1, invoicedCents: 3_500, requests: 7 },
    });
    expect(await rig.accounts.life.delete(accountId)).toEqual(counts);

    for (const table of await tables()) {
      const { rows } = await rig.database.pool.query(`select t::text as text from ${table} t`);
      const text = JSON.stringify(rows);
      for (const secret of secrets) expect(text.includes(secret), `${secret} in ${table}`).toBe(false);
    }
    const users = `user_id in (select id from users where account_id = '${accountId}')`;
    for (const table of ["sessions", "credentials", "invitations", "password_resets"])
      expect([table, await count(table, users)]).toEqual([table, 0]);
    for (const table of ["notices", "key_uses"])
      expect(await count(table, table === "notices" ? `account_id = '${accountId}'` : `key_id = '${id}'`)).toBe(0);
    // Counted attempts of networks and of other accounts' people stay.
    const left = await rig.database.pool.query<{ subject: string }>("select subject from attempts");
    await rig.database.pool.query("delete from attempts");
    await rig.identity.login.signIn({ email: address("other"), password: "a wrong password" }, here);
    const { rows: expected } = await rig.database.pool.query<{ subject: string }>("select subject from attempts");
    const subjects = left.rows.map(({ subject }) => subject);
    for (const { subject } of expected) expect(subjects).toContain(subject);
    expect(subjects.length).toBeLessThanOrEqual(expected.length + 6); // networks: one for each purpose and source

    expect(await rig.accounts.subscriptions.invoice(accountId)).toEqual(invoice);
    expect(await count("usage_totals", `account_id = '${accountId}'`)).toBe(2);
    rig.clock.advance(1_000); // a change of package must be later than the change before
    expect(await rig.accounts.show(accountId)).toMatchObject({ name: "deleted", package: null, ownerUserId: null });
    expect((await rig.accounts.list()).some((account) => account.id === accountId)).toBe(false);
    expect((await rig.accounts.list(true)).map((account) => account.id)).toEqual([accountId]);
    expect((await actions())[0]).toBe("account.delete operator done");
    expect(await verifyAudit(rig.database)).toMatchObject({ broken: [] });
    expect(await rig.accounts.show(ofOthers.accountId)).toMatchObject({ name: "ACME", deletedAt: null });
  });

  test("is charged nothing more and refuses every change", async () => {
    await rig.accounts.subscriptions.change(accountId, { action: "trial" });
    await rig.accounts.life.delete(accountId);
    rig.clock.advance(90 * 86_400_000);
    await rig.accounts.subscriptions.chargeWhatIsDue();
    expect(await rig.accounts.subscriptions.invoice(accountId)).toEqual([]);
    const none = `not_found: there is no account ${accountId}`;
    const order = { action: "order", package: "Pro" } as const;
    expect(await refusal(rig.accounts.subscriptions.change(accountId, order))).toBe(none);
    expect(await refusal(rig.accounts.users.create({ accountId, email: address("x"), role: "owner" }))).toBe(none);
    expect(await refusal(rig.accounts.life.rename(accountId, "again"))).toBe(none);
    expect(await refusal(rig.accounts.life.setBlocked(accountId, true))).toBe(none);
    expect(await refusal(rig.accounts.life.delete(accountId))).toBe(none);
    expect(await refusal(rig.accounts.life.deletion(accountId))).toBe(none);
    expect(await signIn()).toEqual({ kind: "wrong" });
    expect(await rig.newAccount(email)).not.toMatchObject({ accountId }); // the address is free again
  });

  test("can be blocked by the operator only, and deleted and renamed also by its Owners", async () => {
    const { id } = await rig.accounts.users.create({ accountId, email: address("admin"), role: "admin" });
    const by = (actor: string) => rig.accounts.as({ actor, source: "192.0.2.7" }).life;
    const forbidden = "forbidden: your role does not allow this";
    for (const actor of [id, userId]) expect(await refusal(by(actor).setBlocked(accountId, true))).toBe(forbidden);
    expect(await refusal(by(id).delete(accountId))).toBe(forbidden);
    expect(await refusal(by(id).rename(accountId, "mine"))).toBe(forbidden);
    await by(userId).rename(accountId, "mine");
    expect(await rig.accounts.show(accountId)).toMatchObject({ name: "mine" });
    await by(userId).delete(accountId);
    expect(await rig.accounts.show(accountId)).toMatchObject({ name: "deleted" });
  });
});

test("an account is created at the agreed price only", async () => {
  const { dueCents, thenCents } = await rig.accounts.subscriptions.previewFirst("pro");
  expect([dueCents, thenCents]).toEqual([3_500, 3_500]);
  const wish = { name: address("Priced"), ownerEmail: address("priced"), package: "Pro" };
  expect(await refusal(rig.accounts.create({ ...wish, dueCents: dueCents - 1 }))).toBe(
    "price_changed: the price has changed: 35.00 EUR net is due now",
  );
  expect(await refusal(accountNamed(rig.database, wish.name))).toMatch(/^not_found/);
  expect(await rig.accounts.create({ ...wish, dueCents })).toMatchObject({ package: "Pro", state: "active" });
});

describe("a name of an account", () => {
  test("may be its id, the beginning of its id, or its name in any case", async () => {
    await rig.accounts.life.rename(accountId, address("Named"));
    const meant = (named: string) => accountNamed(rig.database, named);
    expect(await meant(accountId)).toBe(accountId);
    expect(await meant(` ${address("NAMED")} `)).toBe(accountId);
    const first = (await rig.accounts.list())[0]!;
    expect(await meant(accountId.slice(0, 35))).toBe(accountId);
    expect(await refusal(meant(first.id.slice(0, 3)))).toMatch(/^not_found/);
    expect(await refusal(meant(asId<AccountId>(uuidv7(rig.clock))))).toMatch(/^not_found/);
    expect(await refusal(meant("%"))).toMatch(/^not_found/);
  });

  test("that matches several accounts is refused with their ids", async () => {
    const name = address("twins");
    const twins = [accountId, (await rig.newAccount(address("twin"))).accountId].toSorted();
    for (const id of twins) await rig.accounts.life.rename(id, name);
    expect(await refusal(accountNamed(rig.database, name))).toBe(
      `conflict: ${name} matches several accounts: give one of these ids: ${twins.join(", ")}`,
    );
    await rig.accounts.life.delete(twins[0]!);
    expect(await accountNamed(rig.database, name)).toBe(twins[1]);
  });
});

async function tables(): Promise<readonly string[]> {
  const { rows } = await rig.database.pool.query<{ name: string }>(
    "select quote_ident(table_name) as name from information_schema.tables where table_schema = 'public'",
  );
  return rows.map(({ name }) => name);
}
