/** The portal's listener and the frame around every route of its API. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPortal, type Person, type PortalRig } from "./portal-rig.ts";

let portal: PortalRig;
let ada: Person;
beforeAll(async () => {
  portal = await startPortal();
  ada = await portal.newAccount("ACME", { package: "Pro" });
});
afterAll(() => portal[Symbol.asyncDispose]());

test("the front page tells where the API is, both APIs are described for tools, and nothing else is shown", async () => {
  const front = await portal.fetch("/");
  expect(front.headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(front.text).toContain("https://api.example/&#60;x&#62;");
  for (const [path, operation] of [
    ["/openapi.json", "/v1/chat/completions"],
    ["/api/openapi.json", "/session"],
  ] as const) {
    const { json } = await portal.fetch(path);
    expect(json.openapi).toMatch(/^3\.1/);
    expect(Object.keys(json.paths)).toContain(operation);
  }
  expect((await portal.fetch("/nothing")).status).toBe(404);
  expect((await portal.fetch("/", { method: "POST" })).status).toBe(404);
});

describe("a session", () => {
  test("says who is signed in and what they may do", async () => {
    const answer = await portal.get("/session", ada);
    expect(answer).toMatchObject({ status: 200, json: { user: { role: "owner" }, account: { name: "ACME" } } });
    expect(answer.json.actions).toContain("session");
    expect(answer.headers.get("cache-control")).toBe("no-store");
  });

  test("is needed", async () => {
    expect(await portal.get("/session")).toMatchObject({ status: 401, json: { error: { code: "login_required" } } });
  });
});
