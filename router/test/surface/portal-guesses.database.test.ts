/** Guesses at the portal's secrets: every route with a secret is throttled, and strangers' guesses lock nobody out. */
import { generateSync } from "otplib";
import { beforeEach, describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { asId } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { createIdentity, type Identity } from "../../src/accounts/identity.ts";
import { createLoginThrottle } from "../../src/sign-in/login-throttle.ts";
import type { Database } from "../../src/db/database.ts";
import type { Letter } from "../../src/mail/letters.ts";
import { contract } from "../../src/surface/contract/contract.ts";
import type { Route } from "../../src/surface/contract/route.ts";
import { cheapHashing } from "../accounts/cheap-hashing.ts";
import { password } from "../accounts/identity-rig.ts";
import { startPortal, type Answer, type Person } from "./portal-rig.ts";

const clock = new VirtualClock(Date.parse("2026-11-14T10:30:00Z"));
const newPassword = "another good password";
const wrongPassword = "wrong wrong wrong";
let identity: Identity;
let ada: Person;
let count = 0;
const letters: Letter[] = [];

const portal = await forThisFile(
  startPortal({ clock, parts: (database) => ({ identity: (identity = openIdentity(database)) }) }),
);
beforeEach(async () => {
  await portal.database.pool.query("delete from attempts");
  ada = await register();
});

function openIdentity(database: Database): Identity {
  return createIdentity({
    database,
    clock,
    portalUrl: "https://portal.example",
    hashing: cheapHashing(),
    throttle: createLoginThrottle(database, clock),
    registration: "open",
    mail: { send: async (_to, letter) => letters.push(letter) > 0 },
    events: { loginFinished() {} },
  });
}

async function register(): Promise<Person> {
  const email = `ada${++count}@example.com`;
  await portal.send("POST", "/registration", { accountName: "ACME", email });
  const token = letters.at(-1)!.text.match(/#([\w-]{43})/)![1]!;
  const answer = await portal.send("POST", "/registration/confirm", { token, password });
  const cookie = answer.headers.get("set-cookie")!.split(";")[0]!;
  const who = { id: asId<Person["id"]>(""), accountId: asId<Person["accountId"]>(""), email, cookie };
  const { user, account } = (await portal.get("/session", who)).json;
  return { ...who, id: user.id, accountId: account.id };
}

const post = (path: string, body: object, who?: Person) => portal.send("POST", path, body, who);
const codeNow = (secret: string) => generateSync({ secret, epoch: Math.floor(clock.now() / 1000) });
const signIn = (more: object = {}) => post("/sign-in", { email: ada.email, password, ...more });

async function turnOn(): Promise<string> {
  const { secret } = (await post("/totp/set-up", { password }, ada)).json;
  expect((await post("/totp/confirm", { code: codeNow(secret) }, ada)).status).toBe(200);
  clock.advance(60_000);
  return secret;
}

/** Guesses codes with the right password, each time from another network, until the portal throttles them. */
async function guessCodesFromEverywhere(): Promise<number> {
  for (let n = 0; ; n++) {
    const from = { source: `10.${n >> 8}.${n & 255}.1`, agent: "a stranger" };
    const { kind } = await identity.login.signIn({ email: ada.email, password, code: "000000" }, from);
    if (kind === "throttled") return n;
    expect([n < 100, kind]).toEqual([true, "code-wrong"]);
  }
}

describe("while strangers who know the password keep guessing codes, the user", () => {
  test("can sign in from a known network, and change password and second factor in an open session", async () => {
    const secret = await turnOn();
    expect(await guessCodesFromEverywhere()).toBe(10);
    const answer = await signIn({ code: codeNow(secret) });
    expect(answer.status).toBe(204);
    // From an unknown network, in an open session.
    await portal.database.pool.query("update attempts set known_until = null");
    clock.advance(60_000);
    const change = { password, code: codeNow(secret), newPassword };
    expect((await post("/password", change, ada)).status).toBe(204);
    clock.advance(60_000);
    const off = { password: newPassword, code: codeNow(secret) };
    expect((await post("/totp/off", off, ada)).status).toBe(204);
  });
});

test("a password-reset link, which needs no code, does not make its network known for codes", async () => {
  const secret = await turnOn();
  await guessCodesFromEverywhere();
  const stranger = { source: "203.0.113.5", agent: "a stranger" };
  const signInThere = (code?: string) =>
    identity.login.signIn({ email: ada.email, password: newPassword, code }, stranger);
  await identity.passwords.requestReset(ada.email, stranger.source);
  await identity.passwords.reset(letters.at(-1)!.text.match(/#([\w-]{43})/)![1]!, newPassword, stranger.source);
  expect((await signInThere()).kind).toBe("code-required");
  expect((await signInThere(codeNow(secret))).kind).toBe("throttled");
});

type Guess = (n: number) => readonly [path: string, body: object, who?: Person];
const link = (n: number) => ({ token: String(n).padStart(43, "x") });
const proof = { password: wrongPassword };

/** A wrong secret for each route with a secret. */
const guesses: Readonly<Record<string, Guess>> = {
  signIn: () => ["/sign-in", { email: ada.email, ...proof }],
  register: (n) => ["/registration", { accountName: "E", email: `eve${count}.${n}@example.com`, password }],
  previewRegistration: (n) => ["/registration/preview", link(n)],
  confirmRegistration: (n) => ["/registration/confirm", { ...link(n), password }],
  resetPassword: (n) => ["/password-reset", { ...link(n), password }],
  previewReset: (n) => ["/password-reset/preview", link(n)],
  previewInvitation: (n) => ["/invitation/preview", link(n)],
  acceptInvitation: (n) => ["/invitation", { ...link(n), password }],
  changePassword: () => ["/password", { ...proof, newPassword }, ada],
  setUpTotp: () => ["/totp/set-up", proof, ada],
  confirmTotp: () => ["/totp/confirm", { code: "000000" }, ada],
  turnTotpOff: () => ["/totp/off", proof, ada],
  closeAccount: () => ["/account/closing", { name: "ACME", ...proof }, ada],
};

const secrets = ["password", "code", "token"];
/** The portal's routes with a secret. The console's code is left out, because it has 256 bits and works for a minute. */
const routesWithSecrets = Object.entries(contract as Readonly<Record<string, Route>>)
  .filter(([, { only }]) => only !== "console")
  .filter(([, { body }]) => secrets.some((name) => body !== undefined && name in body.properties))
  .map(([name]) => name);

test("the table has every route with a secret", () => {
  expect(Object.keys(guesses).toSorted()).toEqual(routesWithSecrets.toSorted());
});

test.each(routesWithSecrets)("guesses at %s are refused after some, with how long to wait", async (name) => {
  if (name === "confirmTotp") await post("/totp/set-up", { password }, ada);
  let [answer, n] = [undefined as Answer | undefined, 0];
  do answer = await post(...guesses[name]!(n++));
  while (answer.status !== 429 && n < 100);
  expect([name, answer.status, answer.json.error.code]).toEqual([name, 429, "too_many_attempts"]);
  const seconds = Number(answer.headers.get("retry-after"));
  expect(seconds).toBeGreaterThan(0);
  clock.advance(seconds * 1000);
  expect((await post(...guesses[name]!(n))).status).not.toBe(429);
});

test.each(["changePassword", "setUpTotp", "confirmTotp", "turnTotpOff"])(
  "guesses at %s block neither another session nor a sign-in",
  async (name) => {
    const other = await portal.signIn(ada);
    await post("/totp/set-up", { password }, other);
    for (let n = 0; n < 20; n++) await post(...guesses[name]!(n));
    expect((await post(...guesses[name]!(0))).status).toBe(429);
    expect((await post("/totp/set-up", { password }, other)).status).toBe(200);
    expect((await post("/totp/confirm", { code: "000000" }, other)).status).toBe(401);
    expect((await signIn()).status).toBe(204);
  },
);
