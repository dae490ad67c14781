/** Passwords at the portal: a proof must still hold when a change is written, and links are counted. */
import { generateSync } from "otplib";
import { beforeEach, describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { asId } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { createIdentity, type Identity } from "../../src/accounts/identity.ts";
import { createLoginThrottle } from "../../src/sign-in/login-throttle.ts";
import type { Database } from "../../src/db/database.ts";
import { cheapHashing } from "../accounts/cheap-hashing.ts";
import { until } from "../db/database-fixture.ts";
import { password, tokenOf } from "../accounts/identity-rig.ts";
import { startPortal, type Answer, type Person } from "./portal-rig.ts";

const clock = new VirtualClock(Date.parse("2026-11-14T10:30:00Z"));
const newPassword = "another good password";
let ada: Person;
let count = 0;
/** Is called once, after a password was compared and before anything is written. */
let meanwhile: (() => Promise<unknown>) | undefined;

const portal = await forThisFile(startPortal({ clock, parts: (database) => ({ identity: openIdentity(database) }) }));
beforeEach(async () => {
  meanwhile = undefined;
  await portal.database.pool.query("delete from attempts");
  ada = await register();
});

function openIdentity(database: Database): Identity {
  const hashing = cheapHashing();
  return createIdentity({
    database,
    clock,
    portalUrl: "https://portal.example",
    hashing: {
      ...hashing,
      async verify(...all) {
        const isRight = await hashing.verify(...all);
        const happens = meanwhile;
        meanwhile = undefined;
        await happens?.();
        return isRight;
      },
    },
    throttle: createLoginThrottle(database, clock),
    registration: "open",
    events: { loginFinished() {} },
  });
}

const cookieOf = (answer: Answer) => answer.headers.get("set-cookie")!.split(";")[0]!;

/** Opens an account and signs its Owner in. */
async function register(from?: Person): Promise<Person> {
  const email = `ada${++count}@example.com`;
  const answer = await portal.send("POST", "/registration", { accountName: "ACME", email, password }, from);
  expect(answer.status).toBe(204);
  const who = { id: asId<Person["id"]>(""), accountId: asId<Person["accountId"]>(""), email, cookie: cookieOf(answer) };
  const { user, account } = (await portal.get("/session", who)).json;
  return { ...who, id: user.id, accountId: account.id };
}

const post = (path: string, body: object, who = ada) => portal.send("POST", path, body, who);
const codeOf = ({ status, json }: Answer) => `${status} ${json.error.code}`;

describe("a proven password no longer counts", () => {
  async function turnOn(): Promise<void> {
    const { secret } = (await post("/totp/set-up", { password })).json;
    const confirmed = await post("/totp/confirm", { code: codeNow(secret) });
    expect(confirmed.json.recoveryCodes).toHaveLength(10);
    clock.advance(30_000);
  }
  const codeNow = (secret: string) => generateSync({ secret, epoch: Math.floor(clock.now() / 1000) });
  const factor = async () =>
    (await portal.database.pool.query("select totp_secret, totp_since from credentials where user_id = $1", [ada.id]))
      .rows;

  const deeds: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["another password was set in the same session", () => post("/password", { password, newPassword })],
    ["the session was ended, another is there", () => portal.signIn(ada).then(() => post("/sign-out", {}))],
    [
      "the user was blocked",
      () => portal.database.pool.query("update users set blocked = true where id = $1", [ada.id]),
    ],
  ];

  test.each(deeds)("for setting a second factor up when %s", async (_name, deed) => {
    const before = await factor();
    meanwhile = deed;
    expect(codeOf(await post("/totp/set-up", { password }))).toBe("401 login_failed");
    expect(await factor()).toEqual(before);
  });

  // The factor is still off when the password is compared, so no code is required.
  test.each([...deeds, ["it was turned on", turnOn] as const])(
    "for turning a second factor off when %s",
    async (name, deed) => {
      let before = await factor();
      meanwhile = async () => {
        await deed();
        before = await factor();
      };
      expect(codeOf(await post("/totp/off", { password }))).toBe("401 login_failed");
      expect(await factor()).toEqual(before);
      expect([name, before[0].totp_since !== null]).toEqual([name, deed === turnOn]);
    },
  );

  test.each([
    ["another password", "update credentials set password = '$argon2id$none' where user_id = $1"],
    ["an end of the session", "delete from sessions where user_id = $1"],
    ["a block", "update users set blocked = true where id = $1"],
  ])("when it waits for %s, which is being written", async (_name, sql) => {
    const other = await portal.database.pool.connect();
    using _released = { [Symbol.dispose]: () => other.release(true) };
    await other.query("begin");
    meanwhile = () => other.query(sql, [ada.id]);
    const asked = post("/totp/set-up", { password });
    let isAnswered = false;
    void asked.finally(() => (isAnswered = true));
    const waiting = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    await until(
      "it waits",
      20_000,
      async () => isAnswered || (await portal.database.pool.query(waiting)).rowCount === 1,
    );
    await other.query("commit");
    expect(codeOf(await asked)).toBe("401 login_failed");
    expect(await factor()).toMatchObject([{ totp_secret: null }]);
  });
});

describe("a browser's earlier session ends when the browser", () => {
  async function invited(): Promise<string> {
    const made = await post("/users", { email: `ben${count}@example.com`, role: "member" });
    return tokenOf(made.json.invitationUrl);
  }
  test.each([
    ["signs in", () => post("/sign-in", { email: ada.email, password })],
    ["opens an account", () => post("/registration", { accountName: "E", email: `eve${count}@example.com`, password })],
    ["joins", async () => post("/invitation", { token: await invited(), password })],
  ])("%s [E6]", async (_name, enter) => {
    const answer = await enter();
    expect(answer.status).toBe(204);
    expect((await portal.get("/session", { ...ada, cookie: cookieOf(answer) })).status).toBe(200);
    expect(codeOf(await portal.get("/session", ada))).toBe("401 login_required");
  });
});

describe("the sessions that end at once", () => {
  type Session = "this" | "phone" | "laptop";
  const sessions = ["this", "phone", "laptop"] as const;
  const idOf = async (who: Person) =>
    (await portal.get("/devices", who)).json.items.find(({ current }: { current: boolean }) => current).id;
  const end = async (who: Person) => portal.send("DELETE", `/devices/${await idOf(who)}`, {}, ada);

  test.each<[name: string, deed: (of: Record<Session, Person>) => Promise<Answer>, over: readonly Session[]]>([
    ["are all of the user's, after signing out everywhere", () => post("/sign-out-everywhere", {}), sessions],
    ["are only the own one, after signing out", () => post("/sign-out", {}), ["this"]],
    ["are only another device's, if that one is ended", ({ phone }) => end(phone), ["phone"]],
    ["are only the own one, if it is ended in the list", () => end(ada), ["this"]],
    [
      "are all others, after a password change",
      () => post("/password", { password, newPassword }),
      ["phone", "laptop"],
    ],
  ])("%s [E1]", async (_name, deed, over) => {
    const of = { this: ada, phone: await portal.signIn(ada), laptop: await portal.signIn(ada) };
    const colleague = await portal.newUser(ada, "member");
    const done = await deed(of);
    expect(done.status).toBe(204);
    for (const name of sessions) {
      const expected = over.includes(name) ? "401 login_required" : "200";
      const { status, json } = await portal.get("/session", of[name]);
      expect([name, status === 200 ? "200" : `${status} ${json.error.code}`]).toEqual([name, expected]);
    }
    expect((await portal.get("/session", colleague)).status).toBe(200);
  });

  test("are all of a blocked account: they answer whom to ask, and end when it is unblocked", async () => {
    const colleague = await portal.newUser(ada, "member");
    const { life } = portal.accounts;
    await life.setBlocked(ada.accountId, true);
    const message = "This account is blocked. The operator of this service can change that.";
    for (const who of [ada, colleague]) {
      const { status, json } = await portal.get("/session", who);
      expect([status, json.error.code, json.error.message]).toEqual([403, "account_blocked", message]);
    }
    expect((await post("/keys", { name: "x" })).json.error.code).toBe("account_blocked");
    const again = await portal.send("POST", "/sign-in", { email: ada.email, password });
    expect([again.status, again.json.error.message]).toEqual([403, message]);
    expect((await portal.get("/sign-in-offers", ada)).status).toBe(200);
    await life.setBlocked(ada.accountId, false);
    for (const who of [ada, colleague]) expect((await portal.get("/session", who)).status).toBe(401);
    expect((await portal.send("POST", "/sign-in", { email: ada.email, password })).status).toBe(204);
  });

  test("clear the browser's cookie if they include its own", async () => {
    for (const path of ["/sign-out", "/sign-out-everywhere"]) {
      const answer = await post(path, {}, await portal.signIn(ada));
      expect(answer.headers.get("set-cookie")).toMatch(/^__Host-weiche=; .*Max-Age=0/);
    }
  });
});

test.each([
  ["new invitations", "invitation", () => portal.newUser(ada, "member")],
  ["password-reset links", "password-reset", joined],
])("an account can make thirty %s, and then one every two minutes", async (_what, path, person) => {
  const [admin, ben] = [await portal.newUser(ada, "admin"), await person()];
  const make = (who = ada) => post(`/users/${ben.id}/${path}`, {}, who);
  for (let n = 0; n < 30; n++) expect((await make(n % 2 ? admin : ada)).status).toBe(200);
  for (const who of [ada, admin]) expect(codeOf(await make(who))).toBe("429 too_many_attempts");
  clock.advance(120_000);
  expect((await make()).status).toBe(200);
  expect((await make()).status).toBe(429);
});

async function joined(): Promise<Person> {
  const ben = await portal.newUser(ada, "member");
  const added = "insert into credentials (user_id, password, password_set_at) values ($1, '$argon2id$none', now())";
  await portal.database.pool.query(added, [ben.id]);
  return ben;
}

test("an account can add thirty users, or try thirty addresses, and then one every two minutes", async () => {
  const admin = await portal.newUser(ada, "admin");
  const add = (email: string, who = ada) => post("/users", { email, role: "member" }, who);
  const free = () => `new${++count}@example.com`;
  expect((await add(free())).status).toBe(201);
  for (let n = 1; n < 30; n++) expect((await add(ada.email, n % 2 ? admin : ada)).status).toBe(409);
  for (const [email, who] of [
    [ada.email, ada],
    [free(), admin],
  ] as const) {
    const refused = await add(email, who);
    expect([codeOf(refused), refused.headers.get("retry-after")]).toEqual(["429 too_many_attempts", "120"]);
  }
  expect((await portal.get("/users", ada)).json.total).toBe(3);
  expect((await add(free(), await register())).status).toBe(201);
  clock.advance(120_000);
  expect((await add(free())).status).toBe(201);
  expect((await add(free())).status).toBe(429);
});
