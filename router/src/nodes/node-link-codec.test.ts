import { expect, test } from "vitest";
import { encodingNewsOnce, readHello, type Downlink } from "./node-link-codec.ts";

test("a message to many nodes is encoded once, and every other message once per node", () => {
  let encoded = 0;
  const encode = encodingNewsOnce(({ message }) => {
    encoded++;
    return Buffer.from(String(JSON.stringify(message)));
  });
  const heartbeat = (ledger: string): Downlink => ({ $case: "heartbeat", value: { ledger } });
  const [one, other] = [heartbeat("1"), heartbeat("2")];
  const sent = [one, one, one, other, one, heartbeat("1"), undefined].map((message) => String(encode({ message })));
  expect(sent).toEqual([one, one, one, other, one, one, undefined].map((message) => `${JSON.stringify(message)}`));
  expect(encoded).toBe(5);
});

test.each([
  ["lists no engines", [], undefined],
  ["gives the first and the third model one engine", ["a", "b", "a"], [{ models: ["a", "c"] }]],
  ["gives each model an engine of its own", ["a", "b", "c"], []],
  ["lists too few engines", ["a"], undefined],
])("a hello that %s yields the engines that serve several models", (_what, engines, shared) => {
  const slots = [{ name: "s", models: ["a", "b", "c"], engines }];
  const hello = { node: "n", bootId: "019bd5a6-0c1c-7000-8000-000000000000", agentVersion: "1", slots };
  expect(readHello(hello)).toMatchObject({ slots: [{ models: ["a", "b", "c"], engines: shared }] });
});
