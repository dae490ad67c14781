/** Tests every route with every principal and with ids of the own and another account, from the contract. */
import { beforeAll, describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { contract } from "../../src/surface/contract/contract.ts";
import type { Route } from "../../src/surface/contract/route.ts";
import { expectations, operatorsOwn, operatorsToo, usedDay, type Expected, type Ids } from "./portal-matrix.ts";
import { startPortal, type Person } from "./portal-rig.ts";

const routes: Readonly<Record<string, Route>> = contract;
const names = Object.keys(expectations) as (keyof typeof expectations)[];

let acme: Readonly<Record<"owner" | "admin" | "member", Person>>;
let globex: Readonly<Record<"owner" | "admin" | "member", Person>>;
const portal = await forThisFile(
  startPortal({
    parts: () => ({
      async chat({ sink }) {
        sink.head(200, {});
        sink.end();
      },
    }),
  }),
);
beforeAll(async () => {
  acme = await people("ACME");
  globex = await people("Globex");
});

async function people(name: string) {
  const owner = await portal.newAccount(name, { package: "Pro" });
  const persons = { owner, admin: await portal.newUser(owner, "admin"), member: await portal.newUser(owner, "member") };
  // The addresses differ, so that each account is recognised wherever it appears.
  await portal.database.pool.query("update users set email = role || $2 where account_id = $1", [
    owner.accountId,
    `@${name}.example`.toLowerCase(),
  ]);
  return persons;
}

const none: Ids = { user: "", key: "", notice: "", session: "" };

/** Makes ids to ask for. The key is the asker's own, if possible. */
async function idsOf(of: typeof acme, asker: Person): Promise<Ids> {
  const name = of === acme ? "acme" : "globex";
  const { accountId } = of.owner;
  const holder = asker.accountId === accountId ? asker.id : null;
  const { rows } = await portal.database.pool.query<Ids>(
    `with person as (
       insert into users (id, account_id, email, role, created_at)
       values (gen_random_uuid(), $1, gen_random_uuid() || $2, 'member', now()) returning id
     ), invited as (
       insert into invitations (token_hash, user_id, created_at, expires_at)
       select encode(sha256(id::text::bytea), 'hex'), id, now(), now() + interval '1 hour' from person
     ), held as (
       insert into api_keys (id, account_id, user_id, hash, last_four, name, created_at)
       select gen_random_uuid(), $1, coalesce($3, id), encode(sha256(id::text::bytea), 'hex'), '0000', $4, now() from person
       returning id
     ), told as (
       insert into notices (account_id, kind, event, facts, created_at)
       select $1, 'trial-ending', id, '{"endsAt":"2026-12-14T23:00:00Z"}', now() from person returning id
     ), open as (
       insert into sessions (id, token_hash, user_id, role, source, agent, created_at, seen_at, expires_at)
       select gen_random_uuid(), encode(sha256(id::text::bytea), 'hex'), coalesce($3, id), 'member', '::1', $4, now(), now(),
         now() + interval '1 hour' from person returning id
     ), used as (
       insert into usage_days
       select $1, $5, '-infinity', person.id, held.id, $4, 1, 1, 1, 2000 from person, held
     ), done as (
       insert into audit_log
       select $1, 1e9 + (random() * 1e9)::bigint, now(), person.id, '::1', $4, 'key ' || held.id, 'done', '{}', repeat('0', 64)
       from person, held
     )
     select person.id as "user", held.id as key, told.id as notice, open.id as session from person, held, told, open`,
    [accountId, `@${name}.example`, holder, `${name}'s`, usedDay],
  );
  return rows[0]!;
}

/** Returns the status, and the code of a refusal. */
async function ask(name: string, ids: Ids, who?: Person): Promise<{ outcome: string; text: string }> {
  const { method, path } = routes[name]!;
  const { id = "", query = "", body = {} } = (expectations as Record<string, Expected>)[name]!.ask?.(ids) ?? {};
  const target = path.replace(":id", id) + (query && `?${query}`);
  const answer = method === "GET" ? await portal.get(target, who) : await portal.send(method, target, body, who);
  if (who) await portal.database.pool.query("delete from api_keys where user_id = $1", [who.id]);
  const code = answer.status < 400 ? "" : ` ${answer.json.error.code}`;
  return { outcome: `${answer.status}${code}`, text: answer.text };
}

test("the table and the contract have the same routes [E2]", () => {
  // The console's sign-in needs no session, but the portal does not serve it.
  expect([...names, ...operatorsOwn, "openConsole"].toSorted()).toEqual(Object.keys(contract).toSorted());
  const ofOperator = Object.keys(contract).filter((name) => routes[name]!.may.includes("operator"));
  expect([...operatorsOwn, ...operatorsToo].toSorted()).toEqual(ofOperator.toSorted());
});

test.each([...operatorsOwn, "openConsole"] as const)(
  "the portal's listener serves %s to no principal [H9]",
  async (name) => {
    const { method, path } = routes[name]!;
    const target = path.replace(":id", acme.owner.id);
    const ask = (who?: Person) => (method === "GET" ? portal.get(target, who) : portal.send(method, target, {}, who));
    for (const who of [undefined, acme.owner]) expect((await ask(who)).json.error.code).toBe("404");
  },
);

const principals = ["nobody", "expired", "blocked", "member", "admin", "owner", "stranger"] as const;

/** A person of the first account. Only the stranger is the Owner of the other. */
async function principal(name: (typeof principals)[number]): Promise<Person | undefined> {
  if (name === "nobody") return undefined;
  if (name === "stranger") return portal.signIn(globex.owner);
  const person = await portal.signIn(acme[name === "expired" || name === "blocked" ? "owner" : name]);
  if (name === "expired")
    await portal.database.pool.query(
      "update sessions set created_at = '2020-01-01', seen_at = '2020-01-01', expires_at = '2020-01-02' where user_id = $1",
      [person.id],
    );
  if (name === "blocked")
    await portal.database.pool.query("update users set blocked = true where id = $1", [person.id]);
  return person;
}

const letters: Readonly<Record<string, string>> = { owner: "O", admin: "A", member: "M", stranger: "O" };

/** Returns the allowed results of a request, with ids of the own account or of another. */
function expected(name: (typeof names)[number], role: (typeof principals)[number], isOwn: boolean): readonly string[] {
  const { may, own, foreign } = expectations[name];
  if (may !== "N" && !(role in letters)) return ["401 login_required"];
  if (may !== "N" && !may.includes(letters[role]!)) return ["403 403"];
  if (!isOwn) return [foreign!];
  const granted =
    typeof own === "string" || Array.isArray(own)
      ? own
      : own[(role === "stranger" ? "owner" : role) as keyof typeof own];
  return [granted].flat();
}

describe.each(names)("%s", (name) => {
  const accounts = expectations[name].foreign === undefined ? ["acme"] : ["acme", "globex"];
  const cases = principals.flatMap((role) => accounts.map((whose) => [role, whose] as const));

  test.each(cases)("by %s with ids of %s [E2 E3 H2]", async (role, whose) => {
    const who = await principal(role);
    const isOwn = (role === "stranger") === (whose === "globex") || expectations[name].foreign === undefined;
    const ids = expectations[name].ask ? await idsOf(whose === "acme" ? acme : globex, who ?? acme.owner) : none;
    const other = role === "stranger" ? acme : globex;
    const before = isOwn ? "" : await rowsOf(other);
    const { outcome, text } = await ask(name, ids, who);
    await portal.database.pool.query("update users set blocked = false where id = $1", [acme.owner.id]);
    expect(expected(name, role, isOwn)).toContain(outcome);
    expect(text.toLowerCase()).not.toContain(other === acme ? "acme" : "globex");
    expect(isOwn ? "" : await rowsOf(other)).toBe(before);
  });
});

/** Reads everything that the database stores about an account. */
async function rowsOf(of: typeof acme): Promise<string> {
  const ofAccount = ["users", "api_keys", "subscriptions", "invoice_lines", "ordered_quotes", "audit_log", "notices"];
  const ofUsers = ["credentials", "sessions", "invitations", "password_resets", "recovery_codes", "notice_reads"];
  const parts = [
    "select 'accounts', to_jsonb(t)::text from accounts t where id = $1",
    ...ofAccount.map((table) => `select '${table}', to_jsonb(t)::text from ${table} t where account_id = $1`),
    ...ofUsers.map(
      (table) =>
        `select '${table}', to_jsonb(t)::text from ${table} t where user_id in (select id from users where account_id = $1)`,
    ),
  ];
  const { rows } = await portal.database.pool.query(`${parts.join(" union all ")} order by 1, 2`, [of.owner.accountId]);
  return JSON.stringify(rows);
}
