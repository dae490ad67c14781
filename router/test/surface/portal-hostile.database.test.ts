/** Hostile requests: malformed ones, and text that the database cannot store in every query parameter of every route. */
import { request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TObject } from "typebox";
import { openAdminSocket } from "../../src/surface/admin/admin-socket.ts";
import { contract } from "../../src/surface/contract/contract.ts";
import type { Route } from "../../src/surface/contract/route.ts";
import { temporaryFolder } from "../db/database-fixture.ts";
import { startPortal, type Person, type PortalRig } from "./portal-rig.ts";

const open = new AsyncDisposableStack();
const failures: unknown[] = [];
let portal: PortalRig;
let ada: Person;
let socketPath: string;
beforeAll(async () => {
  portal = open.use(await startPortal());
  ada = await portal.newAccount("ACME", { package: "Pro" });
  socketPath = join(open.use(temporaryFolder()).path, "admin.sock");
  const { database, handlers } = portal;
  const events = { adminFailed: (error: unknown) => void failures.push(error) };
  open.use(await openAdminSocket(socketPath, { database, handlers, events }));
});
afterAll(() => open.disposeAsync());

const routes: Readonly<Record<string, Route>> = contract;
const ofPeople = Object.entries(routes).filter(([, { may }]) => may.includes("owner"));
const queries = ofPeople.flatMap(([name, { path, method, query }]) => {
  const parameters = Object.entries((query as TObject | undefined)?.properties ?? {});
  return parameters.map(
    ([param, schema]) => [name, param, { path, method, schema: schema as { type?: string } }] as const,
  );
});
const strange = ["0000-01-01", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"];
const farAway = ["0001-01-01", "0001-01-01T00:00:00Z", "9999-12-31", "9999-12-31T23:59:59Z", "\u{10ffff}", "'", "\\"];

describe("a malformed request", () => {
  const keys = (body: unknown) => portal.send("POST", "/keys", body, ada);
  const detailsOf = ({ json }: { json: any }) =>
    json.error.details.map(({ param, code }: { param: string; code: string }) => `${param} ${code}`);

  test("is answered with every wrong parameter by name", async () => {
    const answer = await keys({ allowedModels: ["a", 7], creditLimit: "1,5", expiresAt: "soon", colour: "red" });
    expect(answer.json.error).toMatchObject({ type: "invalid_request_error", code: "400", param: expect.any(String) });
    expect(detailsOf(answer).toSorted()).toEqual([
      "allowedModels.1 wrong_type",
      "colour unknown",
      "creditLimit malformed",
      "expiresAt malformed",
      "name missing",
    ]);
    expect(detailsOf(await keys({ name: "x".repeat(201) }))).toEqual(["name too_long"]);
    expect(detailsOf(await keys({ name: "x", allowedModels: ["gpt-9"] }))).toEqual(["allowedModels.0 not_allowed"]);
    expect(detailsOf(await keys({ name: "x", expiresAt: "2026-02-30T00:00:00Z" }))).toEqual(["expiresAt malformed"]);
    expect(detailsOf(await portal.get("/keys?page=x&sort=hash&foo=1", ada)).toSorted()).toEqual([
      "foo unknown",
      "page wrong_type",
      "sort not_allowed",
    ]);
    expect(detailsOf(await portal.get("/keys/1", ada))).toEqual(["id malformed"]);
  });

  test.each([
    ["page=1&page=2", 400],
    ["page=0", 400],
    ["page=1e3", 400],
    ["page=2", 200],
    ["pageSize=201", 400],
    ["search=", 200],
  ])("needs plain numbers in its query: %s is answered with %i", async (query, status) => {
    expect((await portal.get(`/keys?${query}`, ada)).status).toBe(status);
  });

  test.each([
    ["a member twice", '{"name":"a","name":"b"}', 400],
    ["__proto__", '{"name":"a","__proto__":{}}', 400],
    ["no JSON", "{name}", 400],
    ["a number for a name", '{"name":7}', 400],
    ["no object", "[]", 400],
    ["nothing", "", 400],
    ["more than 64 KB", JSON.stringify({ name: "x".repeat(70_000) }), 413],
  ])("is refused: %s", async (_name, body, status) => {
    const headers = { cookie: ada.cookie, origin: portal.origin, "content-type": "application/json" };
    expect((await portal.fetch("/api/keys", { method: "POST", headers, body })).status).toBe(status);
  });
});

test("the contract has enough query parameters to test", () => {
  expect(queries.length).toBeGreaterThan(20);
});

test.each(queries)("%s refuses a NUL in %s, and no text makes it fail", async (name, param, { path, method }) => {
  expect(method).toBe("GET");
  const ask = (value: string) => portal.get(`${path}?${param}=${encodeURIComponent(value)}`, ada);
  const refusesNul = async (value: string) => {
    const { status, json } = await ask(value);
    expect([status, json.error.details]).toEqual([400, [{ param, code: "malformed" }]]);
  };
  const isTime = param === "from" || param === "to";
  const doesNotFail = async (value: string) => {
    const { status, json } = await ask(value);
    const refused = `400 ${param}`;
    const outcome = status === 400 ? `400 ${json.error.details[0].param}` : String(status);
    expect(isTime && strange.includes(value) ? [refused] : ["200", refused]).toContain(outcome);
  };
  const nuls = ["\0", "a\0b"].map((value) => () => refusesNul(value));
  const texts = [...strange, ...farAway].map((value) => () => doesNotFail(value));
  const checks = [...nuls, ...texts];
  // An account has one export at a time, so a second one would be refused for that reason.
  if (name.startsWith("export")) for (const check of checks) await check();
  else await Promise.all(checks.map((check) => check()));
});

test("a body of more than 4,096 values is refused before the schema check", async () => {
  const allowedModels = Array(4_096).fill("m");
  const { status, json } = await portal.send("POST", "/keys", { name: "x", allowedModels }, ada);
  expect([status, json.error.details]).toEqual([400, undefined]);
  expect(json.error.message).toMatch(/more than 4096 values/);
});

test("an expiry before year 1 or after year 9999 in UTC is refused", async () => {
  for (const expiresAt of ["9999-12-31T23:59:59-14:00", "0000-01-01T00:00:00Z"]) {
    const { status, json } = await portal.send("POST", "/keys", { name: "x", expiresAt }, ada);
    expect([status, json.error.details]).toEqual([400, [{ param: "expiresAt", code: "malformed" }]]);
  }
});

/** Sends a request to the admin socket that no command sends. */
function operate(method: string, path: string, body?: object): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = body ? { "content-type": "application/json" } : {};
    const sent = request({ socketPath, method, path, headers }, (response) => {
      response.resume().once("end", () => resolve(response.statusCode!));
    });
    sent.once("error", reject).end(body && JSON.stringify(body));
  });
}

test("the operators' routes refuse the same values", async () => {
  const { accountId: account, id: userId } = ada;
  for (const [param, value] of ["from", "to"].flatMap((name) => strange.map((text) => [name, text] as const)))
    expect(await operate("GET", `/usage?account=${account}&${param}=${encodeURIComponent(value)}`)).toBe(400);
  for (const [param, value] of ["from", "to"].flatMap((name) =>
    [...strange, "\0"].map((text) => [name, text] as const),
  ))
    expect(await operate("GET", `/audit?account=${account}&${param}=${encodeURIComponent(value)}`)).toBe(400);
  for (const param of ["actor", "object", "action"])
    expect(await operate("GET", `/audit?account=${account}&${param}=a%00`)).toBe(400);
  for (const path of [`/usage?account=${account}&from=%00`, "/usage?account=%00", "/keys?userId=%00"])
    expect(await operate("GET", path)).toBe(400);
  for (const expiresAt of ["9999-12-31T23:59:59-14:00", "0000-01-01T00:00:00Z"])
    expect(await operate("POST", "/keys", { userId, name: "x", expiresAt })).toBe(400);
  const change = { action: "upgrade", package: "\0" };
  expect(await operate("POST", `/package/changes?account=${account}`, change)).toBe(400);
  expect(await operate("POST", `/package/changes?account=${account}`, { action: "upgrade", package: "\ud800" })).toBe(
    400,
  );
  expect(failures).toEqual([]);
});
