/** What a person has done stays done if the database fails at once after its commit, and the person learns of it. */
import { generateSync } from "otplib";
import type { PoolClient } from "pg";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { elsewhere, here, identityRigOfFile, password, tokenOf } from "./identity-rig.ts";

const next = "another good password";
const { rig, address } = identityRigOfFile({ mail: true, registration: "open" });
let email: string;
let owner: Awaited<ReturnType<typeof rig.newAccount>>;
/** The database fails after the next commit of a change that is in the audit log. */
let isWatched = false;
let isAway = false;

beforeAll(() => void rig.database.pool.on("connect", watch));
beforeEach(async () => {
  email = address("ada");
  owner = await rig.newAccount(email);
});
afterEach(() => {
  isWatched = isAway = false;
});

function watch(client: PoolClient): void {
  const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
  let isInLog = false;
  Object.assign(client, {
    async query(...args: unknown[]) {
      if (isAway) throw Object.assign(new Error("the database system is shutting down"), { code: "57P01" });
      const text = typeof args[0] === "string" ? args[0] : (args[0] as { readonly text: string }).text;
      isInLog = text !== "begin" && (isInLog || text.includes('insert into "audit_log"'));
      const result = await query(...args);
      isAway = isWatched && isInLog && text === "commit";
      return result;
    },
  });
}

/** Runs an act, with a database that fails right after its commit. */
async function lastBeforeOutage<T>(act: () => Promise<T>): Promise<T> {
  isWatched = true;
  const result = await act();
  expect(isAway).toBe(true);
  isWatched = isAway = false;
  return result;
}

const signIn = (from = here, given = password) => rig.identity.login.signIn({ email, password: given }, from);

test("a sign-in from a new place succeeds and is mailed although the database fails after its commit", async () => {
  await signIn();
  rig.letters.length = 0;
  expect(await lastBeforeOutage(() => signIn(elsewhere))).toMatchObject({ kind: "signed-in" });
  expect(rig.letters).toMatchObject([{ to: email, kind: "sign-in" }]);
});

test("a link sets a password although the database fails after its commit", async () => {
  await rig.identity.passwords.requestReset(email, here.source);
  const url = /https:\S+/.exec(rig.letters.at(-1)!.text)![0];
  await lastBeforeOutage(() => rig.identity.passwords.reset(tokenOf(url), next, here.source));
  expect(await signIn(here, next)).toMatchObject({ kind: "signed-in" });
});

test("an invitation is accepted although the database fails after its commit", async () => {
  const wish = { accountId: owner.accountId, email: address("bob"), role: "member" } as const;
  const { invitationUrl } = await rig.accounts.users.create(wish);
  const accept = () => rig.identity.invitations.accept({ token: tokenOf(invitationUrl), password }, here);
  const { token } = await lastBeforeOutage(accept);
  expect(await rig.identity.sessions.find(token)).toMatchObject({ user: { email: wish.email } });
});

test("a confirmed registration opens the account although the database fails after its commit", async () => {
  const wish = { accountName: "New", email: address("eve") };
  expect(await rig.identity.registration.register(wish, here)).toEqual({ kind: "mailed" });
  const url = /https:\S+/.exec(rig.letters.at(-1)!.text)![0];
  const confirm = () => rig.identity.registration.confirm({ token: tokenOf(url), password }, here);
  const { token } = await lastBeforeOutage(confirm);
  expect(await rig.identity.sessions.find(token)).toMatchObject({ user: { email: wish.email } });
});

test("the second factor shows its recovery codes although the database fails after its commit", async () => {
  const signedIn = await signIn();
  const proof = await rig.identity.prove({ email, password }, here);
  if (signedIn.kind !== "signed-in" || proof.kind !== "proven") throw new Error(proof.kind);
  const { session } = signedIn;
  const { secret } = await rig.identity.secondFactor.setUp({ proof, sessionId: session.id });
  const code = generateSync({ secret, epoch: Math.floor(rig.clock.now() / 1000) });
  const confirm = () => rig.identity.secondFactor.confirm(session, here.source, code);
  expect(await lastBeforeOutage(confirm)).toMatchObject({ kind: "on", recoveryCodes: { length: 10 } });
});
