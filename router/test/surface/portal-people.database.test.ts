/** Users and invitations in the portal's API: lists and changes. */
import { beforeEach, describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { invitationMsMax } from "../../src/accounts/invitation-link.ts";
import { newKey, startPortal, useCredits, type Person } from "./portal-rig.ts";
import { peopleOf } from "../accounts/whole-lists.ts";

const clock = new VirtualClock(Date.parse("2026-11-14T10:30:00Z"));
let ada: Person;
const portal = await forThisFile(startPortal({ clock }));
beforeEach(async () => {
  ada = await portal.newAccount("ACME", { package: "Starter" });
});

/** Marks the person's invitation as accepted. */
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

describe("a user's state and reason are", () => {
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

test("invitations are searched, sorted and counted by the server", async () => {
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

describe("users", () => {
  let cleo: Person;
  let ben: Person;
  beforeEach(async () => {
    [cleo, ben] = [await portal.newUser(ada, "admin"), await portal.newUser(ada, "member")];
  });
  const list = async (query = "") => (await portal.get(`/users?${query}`, ada)).json;

  test("are listed with role, state, use and keys, and can be searched and sorted", async () => {
    await newKey(portal, ben, "a");
    await newKey(portal, ben, "b");
    await useCredits(portal, { key: ben.id, user: ben.id, account: ada.accountId }, 12n);
    await portal.accounts.users.setBlocked(cleo.id, true);
    expect(await list("sort=used&order=desc&pageSize=1")).toMatchObject({
      total: 3,
      items: [
        { email: ben.email, role: "member", creditsUsed: "12.000", keys: 2, state: "invited", lastLoginAt: null },
      ],
    });
    expect(await list("state=blocked")).toMatchObject({ total: 1, items: [{ email: cleo.email }] });
    expect(await list("role=owner")).toMatchObject({ total: 1, items: [{ email: ada.email }] });
    expect(await list(`search=${ben.email.slice(0, 8).toUpperCase()}`)).toMatchObject({ total: 1 });
    expect((await list("sort=role")).items.map(({ role }: { role: string }) => role)).toEqual([
      "owner",
      "admin",
      "member",
    ]);
  });

  test("are invited with a link that the inviting person receives", async () => {
    const body = { email: "New@Example.com", role: "member", creditLimit: "10", allowedModels: ["small-24b"] };
    const made = await portal.send("POST", "/users", { ...body, email: `new${ben.id}@example.com` }, cleo);
    expect(made).toMatchObject({
      status: 201,
      json: { user: { role: "member", state: "invited", creditLimit: "10.000" } },
    });
    expect(made.json.invitationUrl).toMatch(/^https:\/\/portal\.example\/.*#/);
    expect((await portal.send("POST", "/users", { ...body, email: ben.email }, cleo)).status).toBe(409);
  });

  test("lose their keys and sessions at once when they are blocked, and their sessions do not return", async () => {
    const key = await newKey(portal, ben, "ci");
    expect((await portal.send("POST", `/users/${ben.id}/block`, {}, cleo)).json).toMatchObject({ state: "blocked" });
    expect((await portal.get("/session", ben)).status).toBe(401);
    expect((await portal.get(`/keys/${key.id}`, ada)).json).toMatchObject({
      state: "user-blocked",
      reason: "user-blocked",
    });
    await portal.send("POST", `/users/${ben.id}/unblock`, {}, cleo);
    expect((await portal.get("/session", ben)).status).toBe(401);
    expect((await portal.get(`/keys/${key.id}`, ada)).json).toMatchObject({ state: "active", reason: null });
    expect((await portal.get("/session", await portal.signIn(ben))).status).toBe(200);
  });

  test("are removed when they are deleted: their keys are revoked, their address is free, and no route finds them", async () => {
    const key = await newKey(portal, ben, "ci");
    expect((await portal.send("DELETE", `/users/${ben.id}`, {}, cleo)).status).toBe(204);
    expect((await portal.get("/session", ben)).status).toBe(401);
    expect((await list()).total).toBe(2);
    expect((await portal.get(`/keys/${key.id}`, ada)).json).toMatchObject({ state: "revoked" });
    for (const [path, body] of [
      ["block", {}],
      ["unblock", {}],
    ] as const)
      expect((await portal.send("POST", `/users/${ben.id}/${path}`, body, ada)).status).toBe(404);
    expect((await portal.send("POST", "/keys", { name: "x", userId: ben.id }, ada)).status).toBe(404);
    expect((await portal.send("POST", "/users", { email: ben.email, role: "member" }, ada)).status).toBe(201);
  });

  test("must sign in again when their role changes", async () => {
    expect((await portal.send("PATCH", `/users/${ben.id}`, { role: "admin" }, ada)).json).toMatchObject({
      role: "admin",
    });
    expect((await portal.get("/session", ben)).status).toBe(401);
    expect((await portal.get("/session", await portal.signIn(ben))).json.user.role).toBe("admin");
  });

  test("with the role Owner can be changed only by Owners, and nobody can raise their own role", async () => {
    const refused = async (who: Person, id: string, body: object) =>
      (await portal.send("PATCH", `/users/${id}`, body, who)).status;
    expect(await refused(cleo, ada.id, { creditLimit: "1" })).toBe(403);
    expect(await refused(cleo, ada.id, { role: "member" })).toBe(403);
    expect(await refused(cleo, cleo.id, { role: "owner" })).toBe(403);
    expect(await refused(cleo, ben.id, { role: "owner" })).toBe(403);
    expect(await refused(ben, ben.id, { role: "admin" })).toBe(403);
    expect((await portal.send("POST", "/users", { email: "evil@example.com", role: "owner" }, cleo)).status).toBe(403);
    for (const [method, path] of [
      ["POST", "/block"],
      ["DELETE", ""],
    ] as const) {
      expect((await portal.send(method, `/users/${ada.id}${path}`, {}, cleo)).status).toBe(403);
      expect((await portal.send(method, `/users/${cleo.id}${path}`, {}, cleo)).status).toBe(409);
    }
  });

  test("always include an Owner, also if two Owners, or two operators, remove both at once", async () => {
    await portal.database.pool.query(
      `insert into credentials (user_id, password, password_set_at)
       select unnest($1::uuid[]), '$argon2id$none', now()`,
      [[ada.id, cleo.id]],
    );
    expect((await portal.send("PATCH", `/users/${ada.id}`, { role: "member" }, ada)).status).toBe(409);
    expect((await portal.send("PATCH", `/users/${cleo.id}`, { role: "owner" }, ada)).status).toBe(200);
    const other = await portal.signIn(cleo);
    const statuses = await Promise.all([
      portal.send("PATCH", `/users/${ada.id}`, { role: "admin" }, other),
      portal.send("PATCH", `/users/${cleo.id}`, { role: "admin" }, ada),
    ]);
    expect(statuses.filter(({ status }) => status === 200).length).toBe(1);
    expect(
      (await peopleOf(portal.database, ada.accountId, Date.now())).filter(({ role }) => role === "owner").length,
    ).toBe(1);
    const { users } = portal.accounts;
    for (let round = 0; round < 5; round++) {
      await Promise.all([ada, cleo].map(({ id }) => users.update(id, { role: "owner" })));
      const unseated = await Promise.allSettled([ada, cleo].map(({ id }) => users.update(id, { role: "admin" })));
      expect(unseated.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    }
  });
});
