/** An account keeps one Owner who can sign in, whoever blocks Owners and however many requests do so at once. */
import { beforeEach, describe, expect, test } from "vitest";
import type { AccountId, UserId } from "@weiche/shared/ids.ts";
import { here, identityRigOfFile, password, tokenOf } from "./identity-rig.ts";
import { auditOf, peopleOf } from "./whole-lists.ts";

const { rig, address } = identityRigOfFile();
let accountId: AccountId;
let ada: UserId;

beforeEach(async () => {
  await rig.database.pool.query("delete from attempts");
  ({ accountId, userId: ada } = await rig.newAccount(address("ada")));
});

const operator = { block: (id: UserId) => rig.accounts.users.setBlocked(id, true) };
const by = (actor: UserId) => ({
  block: (id: UserId) => rig.accounts.as({ actor, source: here.source }).users.setBlocked(id, true),
});
const invite = (name: string) => rig.accounts.users.create({ accountId, email: address(name), role: "owner" });
async function secondOwner(): Promise<UserId> {
  const { id, invitationUrl } = await invite("cleo");
  await rig.identity.invitations.accept({ token: tokenOf(invitationUrl), password }, here);
  return id;
}
const signIn = async (name: string) => (await rig.identity.login.signIn({ email: address(name), password }, here)).kind;
const unblockedOwners = async () =>
  (await peopleOf(rig.database, accountId, rig.clock.now())).filter(
    ({ role, state }) => role === "owner" && state !== "blocked",
  ).length;

describe("the last Owner who can sign in cannot be blocked if", () => {
  const stays = "the account must keep one Owner who can sign in";
  const deeds: readonly (readonly [string, () => Promise<unknown>, string])[] = [
    ["an operator tries", () => operator.block(ada), stays],
    ["they try themselves", () => by(ada).block(ada), "you cannot block or delete yourself"],
    ["the other Owner was only invited", () => invite("cleo").then(() => operator.block(ada)), stays],
    [
      "the other Owner is blocked already",
      async () => {
        await operator.block(await secondOwner());
        await operator.block(ada);
      },
      stays,
    ],
  ];
  test.each(deeds)("%s", async (_name, deed, why) => {
    await expect(deed()).rejects.toThrow(why);
    expect(await rig.identity.sessions.list(ada)).toHaveLength(1);
    expect(await signIn("ada")).toBe("signed-in");
    expect((await auditOf(rig.database, accountId)).map(({ result }) => result)).toContain("refused: conflict");
  });
});

test("an Owner who was blocked by another Owner can sign in again once unblocked", async () => {
  const cleo = await secondOwner();
  expect((await by(ada).block(cleo)).blocked).toBe(true);
  expect(await signIn("cleo")).toBe("blocked");
  await rig.accounts.users.setBlocked(cleo, false);
  expect(await signIn("cleo")).toBe("signed-in");
  expect((await operator.block(ada)).blocked).toBe(true);
  expect(await signIn("ada")).toBe("blocked");
});

test("the operator can block an only Owner who never joined", async () => {
  const { id, ownerUserId } = await rig.accounts.create({ name: "Globex", ownerEmail: address("hank") });
  expect((await operator.block(ownerUserId as UserId)).blocked).toBe(true);
  expect(await peopleOf(rig.database, id, rig.clock.now())).toMatchObject([{ role: "owner", state: "blocked" }]);
});

test.each([
  ["two Owners block each other", (cleo: UserId) => [by(ada).block(cleo), by(cleo).block(ada)]],
  ["two operators block one Owner each", (cleo: UserId) => [operator.block(cleo), operator.block(ada)]],
])("when %s at once, one Owner is left [E3]", async (_name, block) => {
  const cleo = await secondOwner();
  for (let round = 0; round < 2; round++) {
    const outcomes = await Promise.allSettled(block(cleo));
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    expect(await unblockedOwners()).toBe(1);
    for (const id of [ada, cleo]) await rig.accounts.users.setBlocked(id, false);
  }
});
