import { beforeEach, describe, expect, test } from "vitest";
import { asId, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import { createIdentity } from "../../src/accounts/identity.ts";
import { sweepIdentity } from "../../src/accounts/identity-sweep.ts";
import { registrationMsMax } from "../../src/accounts/registration.ts";
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
  test("can be previewed any number of times, and its preview opens nothing else", async () => {
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
    await expect(rig.identity.invitations.preview(`${token.slice(1)}x`, here.source)).rejects.toThrow(
      "link is not valid",
    );
    expect(await stateOf(id)).toBe("open");
  });

  test("is accepted with a password and a language; the password signs in at once and later", async () => {
    const { token, id } = await invite("ben");
    await expect(accept(token, { password: "too short" })).rejects.toThrow("at least 12");
    const { session } = await accept(token, { language: "en", theme: "dark" });
    expect(session.user).toMatchObject({ id, email: address("ben"), role: "member", language: "en", theme: "dark" });
    expect((await signIn("ben")).kind).toBe("signed-in");
    expect(await stateOf(id)).toBe("accepted");
    expect((await actions()).slice(0, 2)).toEqual(["session.start done", "user.join done"]);
  });

  test("to a second Owner does not count as an Owner until it is accepted", async () => {
    const invited = await rig.accounts.users.create({ accountId, email: address("ben"), role: "owner" });
    const leave = () => rig.accounts.users.update(owner, { role: "member" });
    await expect(leave()).rejects.toThrow("the account must keep one Owner who can sign in");
    await expect(rig.accounts.users.delete(owner)).rejects.toThrow("the account must keep one Owner who can sign in");
    await accept(tokenOf(invited.invitationUrl));
    expect((await leave()).role).toBe("member");
  });

  test("is used once, even if twenty requests use it at the same time", async () => {
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
  ])("that is %s shows its state and is refused until it is renewed", async (state, end) => {
    const { id, token } = await invite("ben");
    await end(id);
    expect(await stateOf(id)).toBe(state);
    expect((await rig.identity.invitations.preview(token, here.source)).state).toBe(state);
    await expect(accept(token)).rejects.toThrow(`is ${state}`);
    const renewed = await as(owner).invitations.renew(id);
    await expect(accept(token)).rejects.toThrow("link is not valid");
    expect(await stateOf(id)).toBe("open");
    await accept(tokenOf(renewed.invitationUrl));
    expect(await stateOf(id)).toBe("accepted");
  });

  test("of a blocked or deleted user is not valid", async () => {
    const [ben, eve] = [await invite("ben"), await invite("eve")];
    await rig.accounts.users.setBlocked(ben.id, true);
    await rig.accounts.users.delete(eve.id);
    for (const { id, token } of [ben, eve]) {
      await expect(accept(token)).rejects.toThrow("link is not valid");
      await expect(as(owner).invitations.renew(id)).rejects.toThrow(/is blocked|there is no user/);
    }
    expect(await stateOf(eve.id)).toBeUndefined();
  });

  test("is mailed, and the reply has whether it was", async () => {
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
    await expect(as(owner).invitations.renew(id)).rejects.toThrow("has joined already");
    await expect(as(owner).invitations.withdraw(id)).rejects.toThrow("no invitation");
  });
});

describe("a password reset link", () => {
  const request = (who: string, source = here.source) => rig.identity.passwords.requestReset(address(who), source);
  const mailedToken = () => tokenOf(/https:\S+/.exec(rig.letters.at(-1)!.text)![0]);

  test("sets the password once, ends all sessions and other links, and lifts the throttle", async () => {
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

  test("works for one of twenty requests at the same time", async () => {
    await request("ada");
    const token = mailedToken();
    const uses = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) => rig.identity.passwords.reset(token, `the password of ${n} `, here.source)),
    );
    const winners = uses.flatMap((use, n) => (use.status === "fulfilled" ? [n] : []));
    expect(winners.length).toBe(1);
    expect((await signIn("ada", `the password of ${winners[0]} `)).kind).toBe("signed-in");
  });

  test("expires after an hour", async () => {
    await request("ada");
    rig.clock.advance(resetMsMax);
    await expect(rig.identity.passwords.reset(mailedToken(), next, here.source)).rejects.toThrow("expired or was used");
  });

  test("is mailed only to unblocked users who have joined, and the answer is the same for all", async () => {
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

  test("can be requested four times, then is throttled", async () => {
    const waits = [];
    for (let n = 0; n < 6; n++) waits.push(await request("ada", `10.0.${n}.1`));
    expect(waits.map((wait) => wait > 0)).toEqual([false, false, false, false, true, true]);
    expect(rig.letters.length).toBe(4);
  });

  test("is mailed, or shown to its maker if the router sends no mail", async () => {
    const ben = await rig.newUser(accountId, address("ben"));
    expect(await as(owner).passwords.makeResetLink(ben)).toEqual({ mailed: true, resetUrl: null });
    const without = createIdentity(contextWithoutMail());
    const { resetUrl } = await without.as({ actor: owner, source: "x" }).passwords.makeResetLink(ben);
    await rig.identity.passwords.reset(tokenOf(resetUrl), next, elsewhere.source);
    expect((await signIn("ben", next)).kind).toBe("signed-in");
    await expect(without.passwords.requestReset(address("ben"), "x")).rejects.toThrow("sends no mail");
    expect(await actions()).toContain("user.reset-link done");
  });
});

describe("the right to make a user's reset link and invitation", () => {
  test("belongs to Admins for all but Owners, to Owners for all, and to no user for themselves or another account", async () => {
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

describe("registration without mail", () => {
  const identity = () => createIdentity(contextWithoutMail());
  const register = (who: string, source = here.source) =>
    identity().registration.register(
      { accountName: " Ben & Co ", email: address(who), password, language: "en" },
      { ...here, source },
    );

  test("creates an account and signs its Owner in", async () => {
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

  test("with a used address creates no account, and one network may register only ten accounts", async () => {
    const accounts = async () => (await rig.accounts.list()).length;
    const before = await accounts();
    await expect(register("ada")).rejects.toThrow("already");
    // Each of these letters becomes two characters in lower case.
    const long = { accountName: "Long", email: `${"\u0130".repeat(200)}@example.com`, password };
    await expect(identity().registration.register(long, here)).rejects.toThrow("at most 254");
    expect(await accounts()).toBe(before);
    for (let n = 1; n < 10; n++) await register(`n${n}-`);
    expect((await register("late")).kind).toBe("throttled");
    expect((await register("late", elsewhere.source)).kind).toBe("registered");
  });

  test("is refused when it is closed", async () => {
    const closed = createIdentity({ ...rig.context, registration: "closed" });
    const wish = { accountName: "Eve", email: address("eve"), password };
    await expect(closed.registration.register(wish, here)).rejects.toThrow("no registration");
    expect(closed.offers).toEqual({ registration: false, resetByMail: true, terms: null });
  });
});

describe("registration with mail", () => {
  const terms = "https://operator.example/terms";
  const registration = () => createIdentity({ ...rig.context, terms }).registration;
  const wish = (who: string) => ({ accountName: " Eve & Co ", email: address(who), termsAccepted: true }) as const;
  const lettersTo = (who: string) => rig.letters.filter(({ to }) => to === address(who));
  const accountsNow = async () => (await rig.accounts.list()).length;

  test("opens the account at the mailed link, once, and welcomes its Owner", async () => {
    const before = await accountsNow();
    expect(await registration().register({ ...wish("eve"), language: "en" }, here)).toEqual({ kind: "mailed" });
    expect(await accountsNow()).toBe(before);
    const [letter] = lettersTo("eve");
    expect(letter!.subject).toBe("Please confirm your e-mail address");
    const token = tokenOf(/https:\S+/.exec(letter!.text)![0]);
    expect(await registration().preview(token, here.source)).toMatchObject({
      accountName: "Eve & Co",
      email: address("eve"),
    });
    const { session } = await registration().confirm({ token, password }, here);
    expect(session.user).toMatchObject({ email: address("eve"), role: "owner", language: "en" });
    expect(await rig.accounts.show(session.user.accountId)).toMatchObject({ name: "Eve & Co" });
    expect(lettersTo("eve").map(({ kind }) => kind)).toEqual(["registration", "welcome"]);
    expect((await auditOf(rig.database, session.user.accountId)).at(-1)).toMatchObject({
      action: "account.create",
      details: { terms },
    });
    await expect(registration().confirm({ token, password }, here)).rejects.toThrow("register again");
    expect((await signIn("eve")).kind).toBe("signed-in");
  });

  test("needs the terms, ends after a day, and the newest link replaces the others", async () => {
    const { termsAccepted: _accepted, ...without } = wish("fay");
    await expect(registration().register(without, here)).rejects.toMatchObject({
      details: [{ param: "termsAccepted" }],
    });
    await registration().register(wish("fay"), here);
    await registration().register(wish("fay"), here);
    const [first, second] = lettersTo("fay").map(({ text }) => tokenOf(/https:\S+/.exec(text)![0]));
    await expect(registration().preview(first!, here.source)).rejects.toThrow("register again");
    rig.clock.advance(registrationMsMax - 1);
    await registration().preview(second!, here.source);
    rig.clock.advance(1);
    await expect(registration().confirm({ token: second!, password }, here)).rejects.toThrow("register again");
    await sweepIdentity(rig.database, rig.clock.now(), 90);
    expect((await rig.database.pool.query("select from registrations")).rowCount).toBe(0);
  });

  test("tells only the address itself that it has an account already", async () => {
    await rig.newAccount(address("gil"));
    expect(await registration().register(wish("gil"), here)).toEqual({ kind: "mailed" });
    expect(lettersTo("gil").map(({ subject }) => subject)).toEqual([
      "Sie haben schon ein Konto / You have an account already",
    ]);
    expect(lettersTo("gil")[0]!.text).not.toContain("#");
    for (let n = 1; n < 4; n++) await registration().register(wish("gil"), here);
    expect((await registration().register(wish("gil"), elsewhere)).kind).toBe("throttled");
  });
});
