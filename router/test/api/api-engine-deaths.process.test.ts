/** Tests a body that kills engines. Its clients receive an error, and after two deaths no node is asked. */
import { expect, test } from "vitest";
import { apiErrors } from "@weiche/shared/errors.ts";
import { asId } from "@weiche/shared/ids.ts";
import { caller, chat, startApi, type Harness, type SimAnswer } from "./api-harness.ts";

const path = "/v1/chat/completions";
const { status, ...error } = apiErrors.engine_died;
const died: SimAnswer = {
  ...{ status, engineDeath: "alone" },
  chunks: [JSON.stringify({ error: { ...error, message: "x", param: null } })],
};
const cut: SimAnswer = {
  ...{ kind: "events", ending: "error", engineDeath: "alone" },
  chunks: ["data: {}\n\n", `data: ${JSON.stringify({ error })}\n\n`],
};
const poison = chat({ messages: [{ role: "user", content: "poison" }] });

/** Starts nodes whose engines die when a body contains "poison". */
async function start(answer: SimAnswer): Promise<Harness> {
  const api = await startApi();
  api.nodes.script = ({ body }) => (body.includes("poison") ? answer : { chunks: ['{"ok":true}'] });
  return api;
}
const ask = (api: Harness, body: object, key = "sk-good") =>
  api.post(path, body, { authorization: `Bearer ${key}` }).then(
    ({ status: of, json: answer, headers }) => [of, answer?.error?.code, headers.get("x-should-retry")],
    () => "broken",
  );

test.each([
  ["before the first byte", died, [500, "engine_died", null]],
  ["after it", cut, "broken"],
])("after two deaths %s the body is refused at once, and no node is asked [C7]", async (_name, answer, seen) => {
  await using api = await start(answer);
  expect(await ask(api, poison)).toEqual(seen);
  expect(api.nodes.sent, "a death is not carried to another node").toHaveLength(1);
  expect(await ask(api, poison)).toEqual(seen);
  for (let times = 0; times < 3; times++) expect(await ask(api, poison)).toEqual([500, "request_barred", "false"]);
  expect(api.nodes.sent).toHaveLength(2);
  expect(api.refused.at(-1)).toBe("request_barred");
});

test("other bodies, and the same body of another account, are served meanwhile [C7]", async () => {
  await using api = await start(died);
  api.keys.set("sk-other", caller({ accountId: asId("account-2") }));
  for (let times = 0; times < 3; times++) {
    await ask(api, poison);
    expect((await api.post(path, chat())).status).toBe(200);
  }
  expect(await ask(api, poison, "sk-other")).toEqual([500, "engine_died", null]);
});

test("a large body that kills engines is recognised too", async () => {
  await using api = await start(died);
  const large = { ...poison, user: "x".repeat(300_000) };
  for (let times = 0; times < 2; times++) await ask(api, large);
  expect(await ask(api, large)).toEqual([500, "request_barred", "false"]);
  expect(await ask(api, { ...large, user: "x" })).toEqual([500, "engine_died", null]);
});

test("a body that only ran beside the deadly one is cleared by its next answer [C7]", async () => {
  await using api = await start({ ...died, engineDeath: "shared" });
  await ask(api, poison);
  api.nodes.script = () => ({ chunks: ['{"ok":true}'] });
  expect((await ask(api, poison))[0]).toBe(200);
  api.nodes.script = () => died;
  expect(await ask(api, poison)).toEqual([500, "engine_died", null]);
  api.nodes.script = () => ({ chunks: ['{"ok":true}'] });
  expect((await ask(api, poison))[0]).toBe(200);
});
