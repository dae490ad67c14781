import { beforeEach, describe, expect, test } from "vitest";
import { asId, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import { createIdentity } from "../../src/accounts/identity.ts";
import { resetMsMax } from "../../src/sign-in/passwords.ts";
import { invitationMsMax } from "../../src/accounts/invitation-link.ts";
import { instantText } from "../../src/db/database.ts";
import { elsewhere, here, identityRigOfFile, password, tokenOf } from "./identity-rig.ts";
import { auditOf, invitationsOf } from "./whole-lists.ts";

const next = "another good password";
const { rig, address } = identityRigOfFile({ mail: true, registration: "open" });
let accountId: AccountId;
let owner: UserId;

beforeEach(async () => {
  await rig.database.pool.query("delete from attempts");
  rig.letters.length = 0;
  ({ accountId, userId: owner } = await rig.newAccount(address("ada")));
});

const as = (actor: UserId) => rig.identity.as({ actor, source: here.source });
const signIn = (who: string, secret = password) =>
  rig.identity.login.signIn({ email: address(who), password: secret }, here);
async function invite(name: string) {
  const user = await rig.accounts.users.create({ accountId, email: address(name), role: "member" });
  return { id: user.id, token: tokenOf(user.invitationUrl), url: user.invitationUrl };
}
const accept = (token: string, more: object = {}) =>
  rig.identity.invitations.accept({ token, password, ...more }, here);
function contextWithoutMail() {
  const { mail: _none, ...context } = rig.context;
  return context;
}
const stateOf = async (id: UserId) =>
  (await invitationsOf(rig.database, accountId, rig.clock.now())).find(({ userId }) => userId === id)?.state;
const actions = async () => (await auditOf(rig.database, accountId)).map(({ action, result }) => `${action} ${result}`);

describe("an invitation", () => {
  test("shows what it is for, as often as it is opened, and nothing else opens with it", async () => {
    const { token, id } = await invite("ben");
    const preview = {
      email: address("ben"),
      role: "member",
      state: "open",
      accountName: "ACME",
      createdAt: instantText(rig.clock.now()),
      expiresAt: instantText(rig.clock.now() + invitationMsMax),
    };
    expect(await rig.identity.invitations.preview(token, here.source)).toEqual(preview);
    expect(await rig.identity.invitations.preview(token, here.source)).toEqual(preview);
    expect((await signIn("ben")).kind).toBe("wrong");
    await expect(rig.identity.invitations.preview(`${token.slice(1)}x`, here.source)).rejects.toThrow("leads nowhere");
    expect(await stateOf(id)).toBe("open");
  });

  test("is accepted with a password, which signs in at once and later, in the language that was chosen", async () => {
    const { token, id } = await invite("ben");
    await expect(accept(token, { password: "too short" })).rejects.toThrow("at least 12");
    const { session } = await accept(token, { language: "en", theme: "dark" });
    expect(session.user).toMatchObject({ id, email: address("ben"), role: "member", language: "en", theme: "dark" });
    expect((await signIn("ben")).kind).toBe("signed-in");
    expect(await stateOf(id)).toBe("accepted");
    expect((await actions()).slice(0, 2)).toEqual(["session.start done", "user.join done"]);
  });

  test("that an Owner has not accepted keeps the account without another Owner", async () => {
    const invited = await rig.accounts.users.create({ accountId, email: address("ben"), role: "owner" });
    const leave = () => rig.accounts.users.update(owner, { role: "member" });
    await expect(leave()).rejects.toThrow("the last Owner of the account stays");
    await expect(rig.accounts.users.delete(owner)).rejects.toThrow("the last Owner of the account stays");
    await accept(tokenOf(invited.invitationUrl));
    expect((await leave()).role).toBe("member");
  });

  test("is used once, also when twenty use it at the same time", async () => {
    const { token } = await invite("ben");
    const uses = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) => accept(token, { password: `the password of ${n} ` })),
    );
    const winners = uses.flatMap((use, n) => (use.status === "fulfilled" ? [n] : []));
    expect(winners.length).toBe(1);
    expect((await signIn("ben", `the password of ${winners[0]} `)).kind).toBe("signed-in");
    await expect(accept(token)).rejects.toThrow("is accepted");
  });

  test.each([
    ["expired", () => Promise.resolve(rig.clock.advance(invitationMsMax))],
    ["withdrawn", (id: UserId) => as(owner).invitations.withdraw(id)],
  ])("that is %s says so and lets nobody in, until a new one is made", async (state, end) => {
    const { id, token } = await invite("ben");
    await end(id);
    expect(await stateOf(id)).toBe(state);
    expect((await rig.identity.invitations.preview(token, here.source)).state).toBe(state);
    await expect(accept(token)).rejects.toThrow(`is ${state}`);
    const renewed = await as(owner).invitations.renew(id);
    await expect(accept(token)).rejects.toThrow("leads nowhere");
    expect(await stateOf(id)).toBe("open");
    await accept(tokenOf(renewed.invitationUrl));
    expect(await stateOf(id)).toBe("accepted");
  });

  test("of who is blocked or deleted leads nowhere", async () => {
    const [ben, eve] = [await invite("ben"), await invite("eve")];
    await rig.accounts.users.setBlocked(ben.id, true);
    await rig.accounts.users.delete(eve.id);
    for (const { id, token } of [ben, eve]) {
      await expect(accept(token)).rejects.toThrow("leads nowhere");
      await expect(as(owner).invitations.renew(id)).rejects.toThrow(/is blocked|there is no user/);
    }
    expect(await stateOf(eve.id)).toBeUndefined();
  });

  test("is mailed, and who made it is told whether it was", async () => {
    const { id, url } = await invite("ben");
    expect(await rig.identity.invitations.send(id, url)).toBe(true);
    expect(rig.letters).toMatchObject([{ to: address("ben"), kind: "invitation" }]);
    expect(rig.letters[0]!.text).toContain(url);
    const without = createIdentity(contextWithoutMail());
    expect(await without.invitations.renew(id)).toMatchObject({ mailed: null });
    const broken = createIdentity({ ...rig.context, mail: { send: () => Promise.resolve(false) } });
    const renewed = await broken.invitations.renew(id);
    expect(renewed.mailed).toBe(false);
    await accept(tokenOf(renewed.invitationUrl));
    await expect(as(owner).invitations.renew(id)).rejects.toThrow("has joined");
    await expect(as(owner).invitations.withdraw(id)).rejects.toThrow("no invitation");
  });
});

describe("a link for a new password", () => {
  const request = (who: string, source = here.source) => rig.identity.passwords.requestReset(address(who), source);
  const mailedToken = () => tokenOf(/https:\S+/.exec(rig.letters.at(-1)!.text)![0]);

  test("sets it once, ends all sessions and all other links, and frees the person from the throttle", async () => {
    const before = await rig.startSession(owner, here);
    await request("ada");
    const first = mailedToken();
    await request("ada");
    for (let n = 0; n < 8; n++) await signIn("ada", "wrong wrong wrong");
    expect((await signIn("ada")).kind).toBe("throttled");
    await rig.identity.passwords.reset(mailedToken(), next, here.source);
    expect(await rig.identity.sessions.find(before.token)).toBeUndefined();
    for (const token of [first, mailedToken()])
      await expect(rig.identity.passwords.reset(token, password, here.source)).rejects.toThrow("expired or was used");
    expect((await signIn("ada")).kind).toBe("wrong");
    expect((await signIn("ada", next)).kind).toBe("signed-in");
    expect(await actions()).toContain("user.reset-password done");
  });

  test("works for one of twenty that use it at the same time", async () => {
    await request("ada");
    const token = mailedToken();
    const uses = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) => rig.identity.passwords.reset(token, `the password of ${n} `, here.source)),
    );
    const winners = uses.flatMap((use, n) => (use.status === "fulfilled" ? [n] : []));
    expect(winners.length).toBe(1);
    expect((await signIn("ada", `the password of ${winners[0]} `)).kind).toBe("signed-in");
  });

  test("is over after an hour", async () => {
    await request("ada");
    rig.clock.advance(resetMsMax);
    await expect(rig.identity.passwords.reset(mailedToken(), next, here.source)).rejects.toThrow("expired or was used");
  });

  test("is mailed to who has joined and is not blocked, and the answer is the same for all", async () => {
    await invite("invited");
    await rig.accounts.users.setBlocked(await rig.newUser(accountId, address("blocked")), true);
    const spent = [];
    for (const who of ["nobody", "invited", "blocked", "ada"]) {
      rig.spent();
      expect(await request(who, `10.0.${spent.length}.1`)).toBe(0);
      spent.push(rig.spent());
    }
    expect(rig.letters.map(({ to, kind }) => `${kind} ${to}`)).toEqual([`reset ${address("ada")}`]);
    expect(new Set(spent.map((each) => JSON.stringify(each))).size).toBe(1);
  });

  test("is not asked for without end", async () => {
    const waits = [];
    for (let n = 0; n < 6; n++) waits.push(await request("ada", `10.0.${n}.1`));
    expect(waits.map((wait) => wait > 0)).toEqual([false, false, false, false, true, true]);
    expect(rig.letters.length).toBe(4);
  });

  test("is shown to who makes it where no mail goes out, and mailed where it does", async () => {
    const ben = await rig.newUser(accountId, address("ben"));
    expect(await as(owner).passwords.makeResetLink(ben)).toEqual({ mailed: true, resetUrl: null });
    const without = createIdentity(contextWithoutMail());
    const { resetUrl } = await without.as({ actor: owner, source: "x" }).passwords.makeResetLink(ben);
    await rig.identity.passwords.reset(tokenOf(resetUrl), next, elsewhere.source);
    expect((await signIn("ben", next)).kind).toBe("signed-in");
    await expect(without.passwords.requestReset(address("ben"), "x")).rejects.toThrow("no mail is sent here");
    expect(await actions()).toContain("user.reset-link done");
  });
});

describe("who opens and closes the doors of others", () => {
  test("is an Admin for all but Owners, an Owner for all, and nobody for themselves or for another account", async () => {
    const [admin, other, member] = [
      await rig.newUser(accountId, address("admin"), "admin"),
      await rig.newUser(accountId, address("other"), "admin"),
      await rig.newUser(accountId, address("member")),
    ];
    const { userId: stranger } = await rig.newAccount(address("stranger"));
    const link = (actor: UserId, user: UserId) =>
      as(actor)
        .passwords.makeResetLink(user)
        .then(
          () => "done",
          (error: { kind: string }) => error.kind,
        );
    const outcomes = await Promise.all(
      [
        [admin, member],
        [admin, other],
        [owner, admin],
        [admin, owner],
        [member, other],
        [owner, owner],
        [stranger, member],
        [owner, asId<UserId>("00000000-0000-7000-8000-000000000000")],
      ].map(([actor, user]) => link(actor as UserId, user as UserId)),
    );
    expect(outcomes).toEqual(["done", "done", "done", "forbidden", "forbidden", "conflict", "not_found", "not_found"]);
    const { id } = await invite("ben");
    for (const actor of [member, stranger]) {
      await expect(as(actor).invitations.renew(id)).rejects.toThrow(/your role|there is no/);
      await expect(as(actor).invitations.withdraw(id)).rejects.toThrow(/your role|there is no/);
    }
    expect(await stateOf(id)).toBe("open");
    const foreign = await invitationsOf(rig.database, accountId, rig.clock.now());
    expect(foreign.some(({ userId }) => userId === stranger)).toBe(false);
  });
});

describe("registration", () => {
  const register = (who: string, source = here.source) =>
    rig.identity.register(
      { accountName: " Ben & Co ", email: address(who), password, language: "en" },
      { ...here, source },
    );

  test("makes an account whose Owner is signed in", async () => {
    const outcome = await register("ben");
    const { session } = outcome as Extract<typeof outcome, { kind: "registered" }>;
    expect(session.user).toMatchObject({ email: address("ben"), role: "owner", language: "en" });
    expect(await rig.accounts.show(session.user.accountId)).toMatchObject({ name: "Ben & Co", package: null });
    expect((await signIn("ben")).kind).toBe("signed-in");
    expect((await auditOf(rig.database, session.user.accountId)).at(-1)).toMatchObject({
      action: "account.create",
      actor: session.user.id,
      source: here.source,
    });
  });

  test("of an address that is taken leaves no account behind, and there are not many from one network", async () => {
    const accounts = async () => (await rig.accounts.list()).length;
    const before = await accounts();
    await expect(register("ada")).rejects.toThrow("already");
    // Each of these letters becomes two when it is made small.
    const long = { accountName: "Long", email: `${"\u0130".repeat(200)}@example.com`, password };
    await expect(rig.identity.register(long, here)).rejects.toThrow("at most 254");
    expect(await accounts()).toBe(before);
    for (let n = 2; n < 10; n++) await register(`n${n}-`);
    expect((await register("late")).kind).toBe("throttled");
    expect((await register("late", elsewhere.source)).kind).toBe("registered");
  });

  test("is closed unless it is open", async () => {
    const closed = createIdentity({ ...rig.context, registration: "closed" });
    const wish = { accountName: "Eve", email: address("eve"), password };
    await expect(closed.register(wish, here)).rejects.toThrow("by the operator");
    expect(closed.offers).toEqual({ registration: false, resetByMail: true });
  });
});
