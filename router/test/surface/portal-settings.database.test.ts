/** The account's settings and people's names in the portal's API. */
import { beforeEach, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { cheapHashing } from "../accounts/cheap-hashing.ts";
import { acmeAddress, invoiceSettings } from "../accounts/invoices-rig.ts";
import { newKey, startPortal, type Person } from "./portal-rig.ts";

const portal = await forThisFile(startPortal({ invoices: { ...invoiceSettings, since: "2026-01-01" } }));
const password = "correct horse battery";
let owner: Person;

beforeEach(async () => {
  owner = await portal.newAccount("ACME", { package: "Pro" });
  const hashed = await cheapHashing().hash(password, { source: "", isKnown: true });
  await portal.database.pool.query(
    "insert into credentials (user_id, password, password_set_at) values ($1, $2, now())",
    [owner.id, hashed],
  );
});

const close = (body: object) => portal.send("POST", "/account/closing", body, owner);

test("an Owner renames the account, and the audit log says who did it", async () => {
  const renamed = await portal.send("PATCH", "/account", { name: " Hafen & Söhne " }, owner);
  expect(renamed.json).toMatchObject({ name: "Hafen & Söhne", goes: { users: 1 }, stays: { invoices: 0 } });
  expect((await portal.get("/session", owner)).json.account.name).toBe("Hafen & Söhne");
  const [entry] = (await portal.get("/audit?action=account.rename", owner)).json.items;
  expect([entry.actor, entry.result]).toEqual([owner.id, "done"]);
  expect((await portal.send("PATCH", "/account", { name: "\n" }, owner)).json.error.details).toMatchObject([
    { param: "name" },
  ]);
});

test("an account is closed with its name, the own password and a billing address, and its last invoice is issued", async () => {
  const key = await newKey(portal, owner, "ci");
  const wrongName = await close({ name: "Acme", password });
  expect(wrongName.json.error.details).toEqual([{ param: "name", code: "wrong" }]);
  expect((await close({ name: "ACME", password })).json.error).toMatchObject({
    code: "409",
    message: "Add a billing address first: the last invoice needs it.",
  });
  await portal.send("POST", "/billing", acmeAddress, owner);
  const wrongPassword = await close({ name: "ACME", password: "a wrong password" });
  expect(wrongPassword.json.error.details).toEqual([{ param: "password", code: "wrong" }]);
  expect((await portal.get("/keys", owner)).json.items).toMatchObject([{ id: key.id, state: "active" }]);

  const closed = await close({ name: "ACME", password });
  expect([closed.status, closed.headers.get("set-cookie")]).toEqual([204, expect.stringContaining("Max-Age=0")]);
  expect((await portal.get("/session", owner)).status).toBe(401);
  const { items } = await portal.accounts.invoices.listIssued({ accountId: owner.accountId });
  expect(items).toMatchObject([{ buyer: acmeAddress, netCents: 3_500 }]);
  expect(await portal.accounts.list(true)).toContainEqual(
    expect.objectContaining({ id: owner.accountId, name: "deleted" }),
  );
});

test("people choose what they are called, and users and the audit log show it beside the address", async () => {
  const member = await portal.newUser(owner, "member");
  const named = await portal.send("PATCH", "/profile", { name: " Ada Lovelace " }, member);
  expect(named.json.name).toBe("Ada Lovelace");
  const { items } = (await portal.get("/users?search=lovelace", owner)).json;
  expect(items).toMatchObject([{ id: member.id, name: "Ada Lovelace", email: member.email }]);
  await newKey(portal, member, "ci");
  const audit = (await portal.get("/audit?action=key.create", owner)).json.items;
  expect(audit[0].actorName).toBe(`Ada Lovelace (${member.email})`);
  expect((await portal.get("/audit?search=lovelace", owner)).json.items).not.toEqual([]);
  expect((await portal.send("PATCH", "/profile", { name: "a\u0007" }, member)).json.error.details).toMatchObject([
    { param: "name" },
  ]);
  expect((await portal.send("PATCH", "/profile", { name: null }, member)).json.name).toBeNull();
  await portal.send("PATCH", "/profile", { name: "Ada Lovelace" }, member);
  await portal.accounts.users.delete(member.id);
  const { rows } = await portal.database.pool.query("select name from users where id = $1", [member.id]);
  expect(rows).toEqual([{ name: null }]);
});
