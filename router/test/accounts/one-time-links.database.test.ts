/** Invitations and password reset links end when their maker loses the right to make them. */
import { beforeEach, describe, expect, test } from "vitest";
import type { AccountId, UserId } from "@weiche/shared/ids.ts";
import type { Role } from "../../src/db/schema.ts";
import { here, identityRigOfFile, tokenOf } from "./identity-rig.ts";
import { invitationsOf } from "./whole-lists.ts";

const next = "another good password";
const { rig, address } = identityRigOfFile();
let accountId: AccountId;
let ada: UserId;
let cleo: UserId;
let admin: UserId;

/** Two Owners and an Admin who have joined. */
beforeEach(async () => {
  ({ accountId, userId: ada } = await rig.newAccount(address("ada")));
  cleo = await rig.newUser(accountId, address("cleo"));
  await rig.accounts.users.update(cleo, { role: "owner" });
  admin = await rig.newUser(accountId, address("admin"), "admin");
});

/** `actor` null: the operator acts. */
const business = (actor: UserId | null) =>
  actor === null ? rig.accounts : rig.accounts.as({ actor, source: here.source });
const identity = (actor: UserId | null) =>
  actor === null ? rig.identity : rig.identity.as({ actor, source: here.source });
const makeAdmin = (user: UserId) => business(ada).users.update(user, { role: "admin" });
const makeOwner = (user: UserId) => business(ada).users.update(user, { role: "owner" });

async function invite(maker: UserId | null, role: Role = "member", name = "ben") {
  const { id, invitationUrl } = await business(maker).users.create({ accountId, email: address(name), role });
  return { id, token: tokenOf(invitationUrl) };
}
async function resetLink(maker: UserId | null, user: UserId) {
  return { id: user, token: tokenOf((await identity(maker).passwords.makeResetLink(user)).resetUrl) };
}
const join = async ({ token }: { token: string }) =>
  (await rig.identity.invitations.accept({ token, password: next }, here)).session.user.role;
const reset = ({ token }: { token: string }) => rig.identity.passwords.reset(token, next, here.source);
const signIn = async (name: string) =>
  (await rig.identity.login.signIn({ email: address(name), password: next }, here)).kind;
const stateOf = async (id: UserId) =>
  (await invitationsOf(rig.database, accountId, rig.clock.now())).find(({ userId }) => userId === id)!.state;

describe("a user who becomes Owner", () => {
  test("cannot join with an Admin's earlier invitation, but with one of an Owner [E3]", async () => {
    const before = await invite(admin);
    await makeOwner(before.id);
    expect(await stateOf(before.id)).toBe("withdrawn");
    await expect(join(before)).rejects.toThrow("is withdrawn");
    const { invitationUrl } = await identity(ada).invitations.renew(before.id);
    expect(await join({ token: tokenOf(invitationUrl) })).toBe("owner");
  });

  test("cannot get a new password with an Admin's earlier reset link", async () => {
    const ben = await rig.newUser(accountId, address("ben"));
    const before = await resetLink(admin, ben);
    await makeOwner(ben);
    await expect(reset(before)).rejects.toThrow("expired or was used");
    expect(await signIn("ben")).toBe("wrong");
    await reset(await resetLink(ada, ben));
    expect(await signIn("ben")).toBe("signed-in");
  });
});

describe("an Owner's links end when the Owner", () => {
  const deeds: readonly (readonly [string, (owner: UserId) => Promise<unknown>])[] = [
    ["is deleted", (owner) => business(ada).users.delete(owner)],
    ["is blocked", (owner) => business(ada).users.setBlocked(owner, true)],
    ["is blocked by the operator", (owner) => rig.accounts.users.setBlocked(owner, true)],
    ["becomes Admin", makeAdmin],
  ];
  test.each(deeds)("%s: password reset links", async (_name, deed) => {
    const link = await resetLink(cleo, ada);
    const byOperator = await resetLink(null, admin);
    await deed(cleo);
    await expect(reset(link)).rejects.toThrow("expired or was used");
    expect(await signIn("ada")).toBe("wrong");
    await reset(byOperator);
    expect(await signIn("admin")).toBe("signed-in");
  });

  test.each(deeds)("%s: invitations, until they are renewed", async (_name, deed) => {
    const link = await invite(cleo, "owner");
    await deed(cleo);
    expect(await stateOf(link.id)).toBe("withdrawn");
    await expect(join(link)).rejects.toThrow("is withdrawn");
    const { invitationUrl } = await identity(ada).invitations.renew(link.id);
    expect(await join({ token: tokenOf(invitationUrl) })).toBe("owner");
  });

  test("is deleted; renewals by others and accepted invitations stay valid", async () => {
    const [joined, invited] = [await invite(cleo, "member", "dan"), await invite(cleo)];
    await join(joined);
    const { invitationUrl } = await identity(admin).invitations.renew(invited.id);
    await business(ada).users.delete(cleo);
    const row = rig.database.kysely.selectFrom("invitations").select("withdrawnAt").where("userId", "=", joined.id);
    expect(await row.executeTakeFirstOrThrow()).toEqual({ withdrawnAt: null });
    expect(await signIn("dan")).toBe("signed-in");
    expect(await join({ token: tokenOf(invitationUrl) })).toBe("member");
  });
});

test("a change of anything but a role ends no link", async () => {
  const link = await invite(admin);
  await business(ada).users.update(link.id, { allowedModels: ["a"], role: "member" });
  await business(ada).users.update(admin, { allowedModels: null });
  expect(await join(link)).toBe("member");
});
