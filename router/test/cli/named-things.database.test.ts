/** Users, keys and accounts in commands, by names and starts of ids. */
import { beforeAll, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { startWholeRouter } from "./whole-router.ts";
import { endedOutcomes } from "../../src/usage/requests/outcomes.ts";

const people: Record<string, string> = {};
const keys: Record<string, string> = {};

const whole = await forThisFile(startWholeRouter("", { level: "trace" }));
beforeAll(async () => {
  for (const [account, email] of [
    ["Acme", "ada@acme.example"],
    ["Globex", "bob@globex.example"],
  ] as const) {
    const made = await json("account", "create", "--name", account, "--owner-email", email);
    people[email] = String(made["ownerUserId"]);
    for (const name of ["ci", "Nightly build"])
      keys[`${account} ${name}`] = String((await json("key", "create", "--user", email, "--name", name))["id"]);
  }
});

async function json(...args: string[]): Promise<Record<string, unknown>> {
  const { code, out, error } = await whole.weiche("--json", ...args);
  expect([code, error]).toEqual([0, ""]);
  return JSON.parse(out) as Record<string, unknown>;
}

async function refusal(...args: string[]): Promise<string> {
  const { code, out, error } = await whole.weiche(...args);
  expect([code, out]).toEqual([1, ""]);
  return error.trim();
}

const ada = () => people["ada@acme.example"]!;
/** Returns the shortest unique start of the id, with at least 4 characters. */
function prefixOf(id: string, others: readonly string[]): string {
  const isShared = (prefix: string) => others.some((other) => other !== id && other.startsWith(prefix));
  let length = 4;
  while (isShared(id.slice(0, length))) length++;
  return id.slice(0, length);
}

test("a user is found by their e-mail address in any case, by a unique start of their id, or by the id", async () => {
  for (const named of [ada(), "ada@acme.example", "ADA@acme.example", prefixOf(ada(), Object.values(people))])
    expect(await json("user", "show", named)).toMatchObject({ id: ada(), email: "ada@acme.example" });
  expect(await json("user", "update", "ada@acme.example", "--credit-limit", "5")).toMatchObject({ id: ada() });
  expect(await json("user", "logout", "ada@acme.example")).toEqual({ id: ada() });
  expect(await json("key", "list", "--user", "ada@acme.example")).toHaveLength(2);
  expect(await refusal("user", "show", "eve@acme.example")).toBe("weiche: there is no user eve@acme.example");
});

test("a key is found by its name within its account or user, and the ids are listed if several match", async () => {
  const ids = [keys["Acme ci"]!, keys["Globex ci"]!];
  const several = await refusal("key", "show", "ci");
  expect(several).toMatch(/^weiche: ci matches several keys: give one of these ids: /);
  expect(several).toContain(`${ids[0]} of ada@acme.example`);
  expect(several).toContain(`${ids[1]} of bob@globex.example`);
  expect(await json("key", "show", "ci", "--account", "acme")).toMatchObject({ id: ids[0] });
  expect(await json("key", "show", "CI", "--user", "bob@globex.example")).toMatchObject({ id: ids[1] });
  expect(await json("key", "show", prefixOf(ids[1]!, Object.values(keys)))).toMatchObject({ id: ids[1] });
  expect(await refusal("key", "show", ids[0]!, "--account", "globex")).toMatch(/^weiche: there is no key /);
  const shared = ids[0]!.slice(0, 4);
  expect(await refusal("key", "show", shared)).toMatch(/^weiche: \S+ matches several keys: /);
  expect(await refusal("key", "show", "ci", "--account", "nobody")).toBe("weiche: there is no account nobody");
});

test("a usable key is found before revoked ones of the same name, and a revoked key is still found", async () => {
  const renewed = await json("key", "regenerate", "nightly build", "--account", "Acme");
  expect(renewed["id"]).not.toBe(keys["Acme Nightly build"]);
  expect(await json("key", "show", "Nightly build", "--account", "Acme")).toMatchObject({ id: renewed["id"] });
  expect(await json("key", "revoke", "Nightly build", "--account", "Globex")).toMatchObject({ state: "revoked" });
  expect(await json("key", "show", "Nightly build", "--account", "Globex")).toMatchObject({
    id: keys["Globex Nightly build"],
  });
});

test("the audit log can be filtered by the e-mail address of the actor or the object", async () => {
  const done = (await json("audit", "--account", "Acme", "--object", "ada@acme.example")) as unknown as object[];
  expect(done.map((entry) => (entry as { action: string }).action)).toEqual(["session.end-all", "user.update"]);
});

test("the audit log can be filtered by the name of a key or the account, and an unknown name is refused", async () => {
  const actions = async (object: string) => {
    const entries = await json("audit", "--account", "Acme", "--object", object);
    return (entries as unknown as { action: string }[]).map(({ action }) => action);
  };
  expect(await actions("Nightly build")).toContain("key.regenerate");
  expect(await actions("Acme")).toContain("account.create");
  expect(await refusal("audit", "--account", "Acme", "--object", "nobody")).toMatch(/there is no account nobody/);
  expect(await refusal("audit", "--account", "Acme", "--actor", "x@example.com")).toMatch(/there is no user/);
});

test("requests can be filtered by the account's name, and an unknown account is refused", async () => {
  expect(await json("requests", "--account", "Acme")).toMatchObject({ items: [] });
  expect(await refusal("requests", "--live", "--account", "Nobody Ltd")).toBe("weiche: there is no account Nobody Ltd");
});

test.each(endedOutcomes)("requests in a router's memory can be filtered by the outcome %s", async (outcome) => {
  expect(await json("requests", "--here", "--outcome", outcome)).toMatchObject({ items: [] });
});

test("a text that is neither a name nor an id finds no user, whatever characters it contains", async () => {
  for (const odd of ["%", "____", "ab", "' or true --", "a".repeat(64)])
    expect(await refusal("user", "show", odd)).toMatch(/^weiche: there is no user /);
});

test("names and addresses in commands do not appear in the router's log", () => {
  expect(whole.logged.length).toBeGreaterThan(5);
  expect(whole.logged.filter((line) => /acme|globex|nightly/i.test(line))).toEqual([]);
});
