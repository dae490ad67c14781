/** Users and keys through the portal's API: what the lists tell, and what each change does. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startPortal, type Person, type PortalRig } from "./portal-rig.ts";

let portal: PortalRig;
let ada: Person;
let cleo: Person;
let ben: Person;
beforeAll(async () => {
  portal = await startPortal();
});
afterAll(() => portal[Symbol.asyncDispose]());
beforeEach(async () => {
  ada = await portal.newAccount("ACME", { package: "Starter" });
  [cleo, ben] = [await portal.newUser(ada, "admin"), await portal.newUser(ada, "member")];
});

async function newKey(who: Person, name: string, more: object = {}): Promise<any> {
  const answer = await portal.send("POST", "/keys", { name, ...more }, who);
  expect(answer.status).toBe(201);
  return answer.json.key;
}

describe("keys", () => {
  test("are made, shown once, changed, regenerated and revoked", async () => {
    const made = await portal.send(
      "POST",
      "/keys",
      { name: " ci ", creditLimit: "5", allowedModels: ["small-24b"] },
      ben,
    );
    expect(made.json).toMatchObject({
      value: expect.stringMatching(/^sk-weiche-/),
      key: {
        name: "ci",
        state: "active",
        reason: null,
        creditLimit: "5.000",
        creditsUsed: "0.000",
        userEmail: ben.email,
      },
    });
    const { id, lastFour } = made.json.key;
    expect(made.json.value.endsWith(lastFour)).toBe(true);
    expect((await portal.get(`/keys/${id}`, ben)).text).not.toContain(made.json.value);
    const changed = await portal.send(
      "PATCH",
      `/keys/${id}`,
      { name: "cd", expiresAt: "2099-01-01T00:00:00+01:00" },
      ben,
    );
    expect(changed.json).toMatchObject({ name: "cd", expiresAt: "2098-12-31T23:00:00Z", allowedModels: ["small-24b"] });
    const fresh = await portal.send("POST", `/keys/${id}/regenerate`, {}, ben);
    expect(fresh).toMatchObject({ status: 201, json: { key: { name: "cd", state: "active", creditLimit: "5.000" } } });
    expect((await portal.get(`/keys/${id}`, ben)).json).toMatchObject({ state: "revoked", reason: "regenerated" });
    const revoked = await portal.send("POST", `/keys/${fresh.json.key.id}/revoke`, {}, ben);
    expect(revoked.json).toMatchObject({ state: "revoked", reason: "revoked" });
  });
});
