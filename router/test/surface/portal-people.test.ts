/** The portal's lists of invitations and users, with the reason why somebody is not active. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { invitationMsMax } from "../../src/accounts/invitation-link.ts";
import { startPortal, type Person, type PortalRig } from "./portal-rig.ts";

const clock = new VirtualClock(Date.parse("2026-11-14T10:30:00Z"));
let portal: PortalRig;
let ada: Person;
beforeAll(async () => {
  portal = await startPortal({ clock });
});
afterAll(() => portal[Symbol.asyncDispose]());
beforeEach(async () => {
  ada = await portal.newAccount("ACME", { package: "Starter" });
});

/** As if somebody had accepted the invitation, whenever that is. */
async function join({ id }: Person): Promise<void> {
  await portal.database.pool.query("update invitations set used_at = now() where user_id = $1", [id]);
  const added = "insert into credentials (user_id, password, password_set_at) values ($1, '$argon2id$none', now())";
  await portal.database.pool.query(added, [id]);
}
const withdraw = ({ id }: Person) => portal.send("DELETE", `/users/${id}/invitation`, {}, ada);
async function letTimePass(): Promise<void> {
  clock.advance(invitationMsMax);
  ada = await portal.signIn(ada);
}

describe("a user's state comes with its reason:", () => {
  const reached = "update users set limit_reached_until = '2099-01-01' where id = $1";
  test.each<[state: string, reason: string | null, come: (ben: Person) => Promise<unknown>]>([
    ["invited", "invited", async () => {}],
    ["uninvited", "invitation-withdrawn", withdraw],
    ["uninvited", "invitation-expired", letTimePass],
    ["active", null, join],
    ["active", "user-limit", (ben) => join(ben).then(() => portal.database.pool.query(reached, [ben.id]))],
    ["blocked", "blocked", (ben) => join(ben).then(() => portal.send("POST", `/users/${ben.id}/block`, {}, ada))],
    ["blocked", "blocked", (ben) => portal.send("POST", `/users/${ben.id}/block`, {}, ada)],
  ])("%s, %s", async (state, reason, come) => {
    const ben = await portal.newUser(ada, "member");
    await come(ben);
    expect((await portal.get(`/users/${ben.id}`, ada)).json).toMatchObject({ state, reason });
    expect((await portal.get(`/users?state=${state}&role=member`, ada)).json.items).toMatchObject([{ state, reason }]);
  });
});

test("invitations are found, sorted and counted by the server", async () => {
  const [ben, cleo, dan, eve] = await Promise.all(
    (["member", "admin", "member", "member"] as const).map((role) => portal.newUser(ada, role)),
  );
  const order = [ada, ben!, cleo!, dan!, eve!];
  for (const [minutes, { id }] of order.entries())
    await portal.database.pool.query(
      "update invitations set created_at = created_at + $2 * interval '1 minute' where user_id = $1",
      [id, minutes],
    );
  await join(ben!);
  await withdraw(dan!);
  const short = "update invitations set expires_at = created_at + interval '1 second' where user_id = $1";
  await portal.database.pool.query(short, [eve!.id]);
  const list = async (query: string) => {
    const { items, total } = (await portal.get(`/invitations?${query}`, ada)).json;
    return [total, items.map(({ userId }: { userId: string }) => order.findIndex(({ id }) => id === userId))];
  };
  expect((await portal.get("/invitations", ada)).json).toMatchObject({ total: 5, page: 1, pageSize: 50 });
  clock.advance(5 * 60_000);
  expect(await list("")).toEqual([5, [4, 3, 2, 1, 0]]);
  expect(await list("pageSize=2&page=2")).toEqual([5, [2, 1]]);
  expect(await list("pageSize=2&page=4")).toEqual([5, []]);
  expect(await list("sort=created&order=asc&pageSize=2")).toEqual([5, [0, 1]]);
  expect((await list("sort=role"))[1].slice(0, 2)).toEqual([0, 2]);
  expect((await list("sort=email"))[1].slice(0, 1)).toEqual([2]); // admin… before member… and owner…
  expect((await list("sort=expires&pageSize=1"))[1]).toEqual([4]);
  expect((await list("sort=state&order=desc&pageSize=2"))[1]).toEqual([1, 3]);
  expect(await list(`search=${cleo!.email.slice(0, 8).toUpperCase()}`)).toEqual([1, [2]]);
  expect(await list("search=%25")).toEqual([0, []]);
  expect(await list("role=admin")).toEqual([1, [2]]);
  const states = { open: [2, 0], accepted: [1], withdrawn: [3], expired: [4] };
  for (const [state, who] of Object.entries(states)) expect(await list(`state=${state}`)).toEqual([who.length, who]);
  expect(await list("state=open&role=member")).toEqual([0, []]);
  expect((await portal.get("/invitations?sort=token", ada)).status).toBe(400);
  await portal.send("DELETE", `/users/${cleo!.id}`, {}, ada);
  expect((await list(""))[0]).toBe(4);
});
