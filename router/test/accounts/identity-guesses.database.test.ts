/** Guessed passwords and codes: the limits of attempts, and the second factor. */
import { generateSync } from "otplib";
import { beforeEach, describe, expect, test } from "vitest";
import type { AccountId, UserId } from "@weiche/shared/ids.ts";
import { unknownAddress } from "../../src/edge/client-network.ts";
import { forgottenMs } from "../../src/sign-in/attempt-rules.ts";
import { sweepIdentity } from "../../src/accounts/identity-sweep.ts";
import { elsewhere, here, identityRigOfFile, password } from "./identity-rig.ts";
import { auditOf } from "./whole-lists.ts";

const minuteMs = 60_000;
const { rig, address, anotherRouter } = identityRigOfFile();
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

describe("too many attempts", () => {
  const wrong = (from = here, who = email) => signIn({ email: who, password: "wrong wrong wrong" }, from);
  async function fail(times: number, from = here) {
    for (let n = 0; n < times; n++) expect((await wrong(from)).kind).toBe("wrong");
  }

  test("are refused before anything is hashed, even with the right password, until the waiting time has passed [E5]", async () => {
    await fail(8);
    rig.spent();
    expect(await signIn()).toEqual({ kind: "throttled", waitMs: 2 * minuteMs });
    expect(rig.spent().hashes).toBe(0);
    rig.clock.advance(2 * minuteMs);
    expect((await signIn()).kind).toBe("signed-in");
    await fail(8);
  });

  test("are refused by another router on the same database, too", async () => {
    await fail(8);
    const again = await anotherRouter();
    again.clock.advance(rig.clock.now() - again.clock.now());
    expect((await again.identity.login.signIn({ email, password }, here)).kind).toBe("throttled");
  });

  test("at once get no more tries than one after another", async () => {
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => wrong()));
    expect(outcomes.filter(({ kind }) => kind === "wrong").length).toBe(8);
    expect(outcomes.filter(({ kind }) => kind === "throttled").length).toBe(12);
  });

  test("are counted per network, even for an address that no user has", async () => {
    for (let n = 0; n < 8; n++) await wrong({ ...here, source: `192.0.2.${n}` }, address("nobody"));
    expect((await wrong({ ...here, source: "192.0.2.200" }, address("nobody"))).kind).toBe("throttled");
    expect((await wrong({ ...here, source: "192.0.3.1" }, address("nobody"))).kind).toBe("wrong");
  });

  test("for many addresses from one network are refused, too", async () => {
    const outcomes = [];
    for (let n = 0; n < 61; n++) outcomes.push((await wrong(elsewhere, `n${n}@example.com`)).kind);
    expect(outcomes.indexOf("throttled")).toBe(60);
    expect((await signIn()).kind).toBe("signed-in");
  });

  test("from one network do not lock the person out in another network", async () => {
    await fail(8, elsewhere);
    expect((await wrong(elsewhere)).kind).toBe("throttled");
    expect((await signIn()).kind).toBe("signed-in");
  });

  test("from many networks never lock a person out in a network of an earlier sign-in or a password reset", async () => {
    await signedIn();
    let refused = 0;
    for (let n = 0; n < 110; n++) if ((await wrong({ ...here, source: `10.0.${n}.1` })).kind === "throttled") refused++;
    expect(refused).toBe(10);
    expect((await signIn({}, elsewhere)).kind).toBe("throttled");
    expect((await signIn()).kind).toBe("signed-in");
    const { resetUrl } = await rig.identity.passwords.makeResetLink(userId);
    await rig.identity.passwords.reset(resetUrl!.split("#")[1]!, password, elsewhere.source);
    expect((await signIn({}, elsewhere)).kind).toBe("signed-in");
  });

  test("from many networks do not lock a person out who has just accepted an invitation", async () => {
    for (let n = 0; n < 110; n++) await wrong({ ...here, source: `10.0.${n}.1` });
    expect((await signIn({}, elsewhere)).kind).toBe("throttled");
    expect((await signIn()).kind).toBe("signed-in");
  });

  test("from many networks lock out a sign-in from an unknown address, even after an earlier one from there", async () => {
    const unknown = { ...here, source: unknownAddress };
    expect((await signIn({}, unknown)).kind).toBe("signed-in");
    for (let n = 0; n < 110; n++) await wrong({ ...here, source: `10.0.${n}.1` });
    expect((await signIn({}, unknown)).kind).toBe("throttled");
    expect((await signIn()).kind).toBe("signed-in");
  });

  test("add no more rows once they are refused, and the rows are deleted later", async () => {
    // The network where the invitation was accepted stays known.
    const sql = "select 1 from attempts where known_until is null";
    const rows = async () => Number((await rig.database.pool.query(sql)).rowCount);
    for (let n = 0; n < 60; n++) await wrong(elsewhere, `n${n}@example.com`);
    const before = await rows();
    for (let n = 60; n < 70; n++) expect((await wrong(elsewhere, `n${n}@example.com`)).kind).toBe("throttled");
    expect(await rows()).toBe(before);
    rig.clock.advance(forgottenMs);
    await sweepIdentity(rig.database, rig.clock.now(), 90);
    expect(await rows()).toBe(0);
  });
});

describe("a second factor", () => {
  const codeNow = (secret: string) => generateSync({ secret, epoch: Math.floor(rig.clock.now() / 1000) });
  async function setUp(code?: string) {
    const proof = await rig.identity.prove({ email, password, code }, here);
    if (proof.kind !== "proven") throw new Error(proof.kind);
    const { session } = await rig.startSession(userId, here);
    sessionId = session.id;
    return rig.identity.secondFactor.setUp({ proof, sessionId });
  }
  let sessionId: string;
  const confirm = (code: string) =>
    rig.identity.secondFactor.confirm({ id: sessionId, user: { id: userId, email } }, here.source, code);
  async function turnOn() {
    const { secret } = await setUp();
    const confirmed = await confirm(codeNow(secret));
    if (confirmed.kind !== "on") throw new Error(confirmed.kind);
    rig.clock.advance(30_000);
    return { secret, codes: confirmed.recoveryCodes };
  }

  test("is off until one of its codes was right", async () => {
    const { secret } = await setUp();
    expect((await signIn()).kind).toBe("signed-in");
    expect(await confirm("000000")).toEqual({ kind: "code-wrong" });
    expect((await signIn()).kind).toBe("signed-in");
    expect(await confirm(codeNow(secret))).toMatchObject({ kind: "on", recoveryCodes: { length: 10 } });
    expect((await signIn()).kind).toBe("code-required");
    rig.clock.advance(30_000);
    await expect(setUp(codeNow(secret))).rejects.toThrow("on already");
    await expect(confirm(codeNow(secret))).rejects.toThrow("on already");
  });

  test("is required only after the right password, and a wrong code counts as an attempt", async () => {
    const { secret } = await turnOn();
    expect((await signIn({ password: "wrong wrong wrong" })).kind).toBe("wrong");
    for (let n = 0; n < 20; n++) expect((await signIn()).kind).toBe("code-required");
    for (let n = 0; n < 7; n++) expect((await signIn({ code: "000000" })).kind).toBe("code-wrong");
    expect((await signIn({ code: codeNow(secret) })).kind).toBe("throttled");
    rig.clock.advance(2 * minuteMs);
    expect((await signIn({ code: codeNow(secret) })).kind).toBe("signed-in");
  });

  test("limits guesses from many networks by somebody who knows the password; its owner can sign in elsewhere later", async () => {
    const { secret } = await turnOn();
    const outcomes = [];
    for (let n = 0; n < 12; n++)
      outcomes.push((await signIn({ code: "000000" }, { ...here, source: `10.0.${n}.1` })).kind);
    expect(outcomes).toEqual([...Array<string>(10).fill("code-wrong"), "throttled", "throttled"]);
    expect((await signIn({ code: codeNow(secret) }, elsewhere)).kind).toBe("throttled");
    expect((await signIn({ code: codeNow(secret) })).kind).toBe("signed-in");
    rig.clock.advance(4 * 60 * minuteMs);
    expect((await signIn({ code: codeNow(secret) }, elsewhere)).kind).toBe("signed-in");
  });

  test("accepts each code once, even if twenty requests send it at the same time", async () => {
    const { secret } = await turnOn();
    const code = codeNow(secret);
    const uses = await Promise.all(Array.from({ length: 20 }, () => rig.identity.secondFactor.use(userId, code)));
    expect(uses.filter(Boolean).length).toBe(1);
    expect((await signIn({ code })).kind).toBe("code-wrong");
    rig.clock.advance(30_000);
    expect((await signIn({ code: codeNow(secret) })).kind).toBe("signed-in");
  });

  test("that is lost is replaced by recovery codes, each valid once", async () => {
    const { codes } = await turnOn();
    const uses = await Promise.all(Array.from({ length: 20 }, () => rig.identity.secondFactor.use(userId, codes[0]!)));
    expect(uses.filter(Boolean).length).toBe(1);
    expect((await signIn({ code: codes[0]! })).kind).toBe("code-wrong");
    expect((await signIn({ code: codes[1]!.toUpperCase() })).kind).toBe("signed-in");
    expect(await rig.identity.profile.show(userId)).toMatchObject({ totp: true, recoveryCodesLeft: 8 });
  });

  test("that is turned off leaves neither a secret nor a recovery code", async () => {
    const { codes } = await turnOn();
    await rig.identity.secondFactor.turnOff(userId);
    expect((await signIn()).kind).toBe("signed-in");
    expect(await rig.identity.secondFactor.use(userId, codes[0]!)).toBe(false);
    const { rows } = await rig.database.pool.query("select totp_secret from credentials where user_id = $1", [userId]);
    expect(rows).toEqual([{ totp_secret: null }]);
    expect((await auditOf(rig.database, accountId)).map(({ action }) => action)).toEqual(
      expect.arrayContaining(["user.totp-on", "user.totp-off"]),
    );
  });

  test("stays on after a password reset", async () => {
    await turnOn();
    const { resetUrl } = await rig.identity.passwords.makeResetLink(userId);
    await rig.identity.passwords.reset(resetUrl!.split("#")[1]!, "another good password", here.source);
    expect((await signIn({ password: "another good password" })).kind).toBe("code-required");
  });
});
