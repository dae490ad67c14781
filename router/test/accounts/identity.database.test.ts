import { beforeEach, describe, expect, test } from "vitest";
import { unknownAddress } from "../../src/edge/client-network.ts";
import type { AccountId, UserId } from "@weiche/shared/ids.ts";
import { createIdentity } from "../../src/accounts/identity.ts";
import { sweepIdentity } from "../../src/accounts/identity-sweep.ts";
import type { Asker } from "../../src/sign-in/few-at-once.ts";
import type { Letter } from "../../src/mail/letters.ts";
import { idleMsMax, sessionMsMax, sessionsPerUserMax, type SignedInFrom } from "../../src/sign-in/sessions.ts";
import { instantText } from "../../src/db/database.ts";
import { cheapHashing } from "./cheap-hashing.ts";
import { elsewhere, here, identityRigOfFile, password, tokenOf } from "./identity-rig.ts";
import { auditOf } from "./whole-lists.ts";

const next = "another good password";
const { rig, address } = identityRigOfFile();
let accountId: AccountId;
let userId: UserId;
let email: string;

beforeEach(async () => {
  for (const table of ["attempts", "sessions", "password_resets"])
    await rig.database.pool.query(`delete from ${table}`);
  rig.logins.length = 0;
  email = address("ada");
  ({ accountId, userId } = await rig.newAccount(email));
});

const signIn = (wish: { email?: string; password?: string; code?: string } = {}, from = here) =>
  rig.identity.login.signIn({ email, password, ...wish }, from);

async function signedIn(from = here) {
  const outcome = await signIn({}, from);
  if (outcome.kind !== "signed-in") throw new Error(outcome.kind);
  return outcome;
}

/** Changes a user in the database only, as another router does. */
async function setUser(id: UserId, change: { blocked?: boolean; role?: "admin" }): Promise<void> {
  await rig.database.kysely.updateTable("users").set(change).where("id", "=", id).execute();
}

test("a sign-in from a new place is mailed to its person once, unless that is the first place or not wanted", async () => {
  const letters: [to: string, kind: string, namesPlace: boolean][] = [];
  const send = async (to: string, { kind, text }: Letter) =>
    letters.push([to, kind, text.includes(elsewhere.source)]) > 0;
  const { login } = createIdentity({ ...rig.context, mail: { send } });
  const signInFrom = async (from: SignedInFrom) =>
    expect(await login.signIn({ email, password }, from)).toMatchObject({ kind: "signed-in" });
  const mailed = () => letters.splice(0);
  await signInFrom(here);
  await signInFrom({ ...here, source: "192.0.2.200" }); // of the same network
  expect(mailed()).toEqual([]);
  await signInFrom(elsewhere);
  expect(mailed()).toEqual([[email, "sign-in", true]]);
  for (const from of [elsewhere, here, { ...here, source: unknownAddress }]) await signInFrom(from);
  expect(mailed()).toEqual([]);
  await rig.identity.profile.update(userId, { mailsOff: ["sign-in"] });
  await signInFrom({ ...here, source: "203.0.113.5" });
  expect(mailed()).toEqual([]);
  rig.clock.advance(181 * 86_400_000);
  await sweepIdentity(rig.database, rig.clock.now(), 30);
  const { rowCount } = await rig.database.pool.query("select 1 from known_places where user_id = $1", [userId]);
  expect(rowCount).toBe(0);
});

describe("a session", () => {
  test("is found by its token, belongs to its user, and is stored only as a hash", async () => {
    const { token, session } = await signedIn();
    expect(session).toEqual({
      id: session.id,
      user: {
        id: userId,
        accountId,
        email,
        role: "owner",
        blocked: false,
        language: null,
        theme: null,
        allowedModels: null,
      },
      accountBlocked: false,
      expiresAtMs: rig.clock.now() + sessionMsMax,
    });
    expect(await rig.identity.sessions.find(token)).toEqual(session);
    expect(await rig.identity.sessions.find(`${token.slice(0, -1)}x`)).toBeUndefined();
    expect(Buffer.from(token, "base64url").length).toBe(32);
    const { rows } = await rig.database.pool.query<{ all: string }>("select json_agg(s)::text as all from sessions s");
    expect(rows[0]!.all).not.toContain(token);
  });

  test("costs one statement per request, even when it is marked as seen", async () => {
    const { token, session } = await signedIn();
    const startMs = rig.clock.now();
    const seenAfter = async () => {
      const { seenAt } = (await rig.identity.sessions.list(userId)).find(({ id }) => id === session.id)!;
      return Date.parse(seenAt) - startMs;
    };
    rig.spent();
    rig.clock.advance(59_000);
    await rig.identity.sessions.find(token);
    expect(rig.spent().statements).toBe(1);
    expect(await seenAfter()).toBe(0);
    rig.clock.advance(1_000);
    rig.spent();
    await rig.identity.sessions.find(token);
    expect(rig.spent().statements).toBe(1);
    expect(await seenAfter()).toBe(60_000);
  });

  test("ends after its idle time, and after a week in any case", async () => {
    const idle = await signedIn();
    rig.clock.advance(idleMsMax - 1);
    expect(await rig.identity.sessions.find(idle.token)).toBeDefined();
    rig.clock.advance(idleMsMax);
    expect(await rig.identity.sessions.find(idle.token)).toBeUndefined();
    expect(await rig.identity.sessions.list(userId)).toEqual([]);

    const busy = await signedIn();
    let lived = 0;
    for (; await rig.identity.sessions.find(busy.token); lived += idleMsMax / 2) rig.clock.advance(idleMsMax / 2);
    expect(lived).toBe(sessionMsMax);
  });

  test.each([
    ["is blocked", (id: UserId) => setUser(id, { blocked: true })],
    ["has another role", (id: UserId) => setUser(id, { role: "admin" })],
    ["signed out everywhere", (id: UserId) => rig.identity.login.signOutEverywhere(id)],
  ])("ends at once for a user who %s", async (_name, deed) => {
    const ben = await rig.newUser(accountId, address("ben"));
    const { token } = await rig.startSession(ben, here);
    expect(await rig.identity.sessions.find(token)).toBeDefined();
    await deed(ben);
    expect(await rig.identity.sessions.find(token)).toBeUndefined();
  });

  test("beyond the maximum replaces the session that was idle longest", async () => {
    await rig.identity.login.signOutEverywhere(userId);
    const tokens: string[] = [];
    for (let n = 0; n < sessionsPerUserMax + 2; n++) {
      tokens.push((await rig.startSession(userId, here)).token);
      rig.clock.advance(1);
    }
    const alive = await Promise.all(tokens.map((token) => rig.identity.sessions.find(token)));
    expect(alive.map((session) => session !== undefined)).toEqual([
      false,
      false,
      ...Array<boolean>(sessionsPerUserMax).fill(true),
    ]);
  });

  test("is listed with its source and agent, without control characters of the browser", async () => {
    await rig.identity.login.signOutEverywhere(userId);
    const { session } = await rig.startSession(userId, {
      source: "192.0.2.7",
      agent: `a\u001b[2Jb\nc${"x".repeat(500)}`,
    });
    expect(await rig.identity.sessions.list(userId)).toEqual([
      {
        id: session.id,
        createdAt: instantText(rig.clock.now()),
        seenAt: instantText(rig.clock.now()),
        expiresAt: instantText(rig.clock.now() + sessionMsMax),
        source: "192.0.2.7",
        agent: `a [2Jb c${"x".repeat(192)}`,
      },
    ]);
  });
});

describe("signing in", () => {
  test("accepts the address in any case and the password in any Unicode composition", async () => {
    expect((await signIn({ email: ` ${email.toUpperCase()} ` })).kind).toBe("signed-in");
    await rig.identity.passwords.change({ email, password }, "u\u0308ber alle Berge", {
      source: here.source,
      sessionId: (await signedIn()).session.id,
    });
    expect((await signIn({ password: "\u00fcber alle Berge" })).kind).toBe("signed-in");
    expect((await signIn({ password })).kind).toBe("wrong");
    expect((await signIn({ email: address("eve") })).kind).toBe("wrong");
  });

  test("costs the same hashes and statements for unknown, uninvited and blocked people and wrong passwords [E5]", async () => {
    await rig.accounts.users.create({ accountId, email: address("invited"), role: "member" });
    const blocked = await rig.newUser(accountId, address("blocked"));
    await rig.accounts.users.setBlocked(blocked, true);
    const spent = [];
    for (const who of [email, address("nobody"), address("invited"), address("blocked")]) {
      rig.spent();
      expect((await signIn({ email: who, password: "wrong wrong wrong" })).kind).toBe("wrong");
      spent.push(rig.spent());
    }
    expect(spent[0]).toEqual({ hashes: 1, statements: 6 });
    expect(new Set(spent.map((each) => JSON.stringify(each))).size).toBe(1);
  });

  test("reports a block only after the right password", async () => {
    const ben = await rig.newUser(accountId, address("ben"));
    await rig.accounts.users.setBlocked(ben, true);
    expect((await signIn({ email: address("ben") })).kind).toBe("blocked");
    expect((await signIn({ email: address("ben"), password: "wrong wrong wrong" })).kind).toBe("wrong");
  });

  test("leaves no session for a user who is blocked while the password is compared", async () => {
    const ben = await rig.newUser(accountId, address("ben"));
    const { hashing } = rig.context;
    const verify = async (stored: string | undefined, text: string, by: Asker) => {
      const isRight = await hashing.verify(stored, text, by);
      await rig.accounts.users.setBlocked(ben, true);
      return isRight;
    };
    const slow = createIdentity({ ...rig.context, hashing: { ...hashing, verify } });
    expect((await slow.login.signIn({ email: address("ben"), password }, here)).kind).toBe("blocked");
    expect(rig.logins).toEqual(["blocked"]);
    expect(await rig.identity.sessions.list(ben)).toEqual([]);
  });

  test("replaces a hash of older parameters once", async () => {
    const stored = async () =>
      (
        await rig.database.pool.query<{ password: string }>("select password from credentials where user_id = $1", [
          userId,
        ])
      ).rows[0]!.password;
    const before = await stored();
    const cost = { memoryKib: 16, passes: 2 };
    const dearer = createIdentity({ ...rig.context, hashing: cheapHashing(cost) });
    expect((await dearer.login.signIn({ email, password }, here)).kind).toBe("signed-in");
    const after = await stored();
    expect([before, after].map((hash) => hash.split("$")[3])).toEqual(["m=8,t=1,p=1", "m=16,t=2,p=1"]);
    expect((await dearer.login.signIn({ email, password }, here)).kind).toBe("signed-in");
    expect(await stored()).toBe(after);
  });

  test("is logged with the number of failed attempts before it; the attempts themselves are not logged", async () => {
    for (let n = 0; n < 3; n++) await signIn({ password: "wrong wrong wrong" });
    await signIn();
    const [entry, before] = await auditOf(rig.database, accountId);
    expect(entry).toMatchObject({
      action: "session.start",
      actor: userId,
      source: here.source,
      details: { failedBefore: 3 },
    });
    expect(before).toMatchObject({ action: "user.join" });
    await signIn();
    expect((await auditOf(rig.database, accountId))[0]).toMatchObject({ details: { failedBefore: 0 } });
    expect(rig.logins).toEqual(["wrong", "wrong", "wrong", "signed-in", "signed-in"]);
  });

  test("with a password that is changed meanwhile starts no session", async () => {
    const hashing = {
      ...rig.context.hashing,
      async verify(stored: string | undefined, text: string, by: Asker) {
        const isRight = await rig.context.hashing.verify(stored, text, by);
        const url = (await rig.identity.passwords.makeResetLink(userId)).resetUrl!;
        await rig.identity.passwords.reset(url.split("#")[1]!, "another good password", elsewhere.source);
        return isRight;
      },
    };
    const slow = createIdentity({ ...rig.context, hashing });
    expect((await slow.login.signIn({ email, password }, here)).kind).toBe("wrong");
    expect(await rig.identity.sessions.list(userId)).toEqual([]);
  });
});

describe("a user's own password", () => {
  test("is changed with the old one, and the change ends all other sessions", async () => {
    const [mine, other] = [await rig.startSession(userId, here), await rig.startSession(userId, elsewhere)];
    const change = (claim: string, wish = next) =>
      rig.identity.as({ actor: userId, source: here.source }).passwords.change({ email, password: claim }, wish, {
        source: here.source,
        sessionId: mine.session.id,
      });
    expect((await change("wrong wrong wrong")).kind).toBe("wrong");
    await expect(change(password, "short")).rejects.toThrow("at least 12");
    expect((await change(password)).kind).toBe("changed");
    expect(await rig.identity.sessions.find(mine.token)).toBeDefined();
    expect(await rig.identity.sessions.find(other.token)).toBeUndefined();
    expect((await signIn({ password: next })).kind).toBe("signed-in");
    for (let n = 0; n < 8; n++) await change("wrong wrong wrong");
    expect((await change(next)).kind).toBe("throttled");
  });

  test.each([
    [
      "a reset link sets another one",
      async () => {
        const { resetUrl } = await rig.identity.passwords.makeResetLink(userId);
        await rig.identity.passwords.reset(tokenOf(resetUrl), "a third good password", elsewhere.source);
      },
      "a third good password",
    ],
    ["the session is ended", () => rig.identity.login.signOutEverywhere(userId), password],
  ])("is not changed when meanwhile %s", async (_what, meanwhile, after) => {
    const { session } = await rig.startSession(userId, here);
    const { hashing } = rig.context;
    const hash = (text: string, by: Asker) =>
      Promise.resolve(text === next && meanwhile()).then(() => hashing.hash(text, by));
    const slow = createIdentity({ ...rig.context, hashing: { ...hashing, hash } });
    const claim = { email, password };
    const outcome = await slow.passwords.change(claim, next, { source: here.source, sessionId: session.id });
    expect(outcome.kind).toBe("wrong");
    expect((await signIn({ password: next })).kind).toBe("wrong");
    expect((await signIn({ password: after })).kind).toBe("signed-in");
  });
});

test("the sweep deletes expired sessions, links and attempts, and nothing else", async () => {
  const quiet = await signedIn();
  await rig.identity.passwords.makeResetLink(userId);
  rig.clock.advance(idleMsMax);
  const { token } = await signedIn();
  await rig.identity.passwords.makeResetLink(userId);
  await sweepIdentity(rig.database, rig.clock.now(), 90);
  const rows = async (table: string) => (await rig.database.pool.query(`select 1 from ${table}`)).rowCount;
  expect([await rows("sessions"), await rows("password_resets")]).toEqual([1, 1]);
  expect(await rig.identity.sessions.find(token)).toBeDefined();
  expect(await rig.identity.sessions.find(quiet.token)).toBeUndefined();
});
