/** Which bodies the agent parses on its main thread. Bytes that go to the other thread are detached here. */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId } from "@weiche/shared/ids.ts";
import { nodePaths } from "@weiche/shared/node-protocol.ts";
import { afterAll, expect, test } from "vitest";
import { WorkReader } from "./read-work.ts";
import type { RequestHead } from "../intake/request-head.ts";

const rules: ModelRules = {
  ...{ id: asId("m"), category: "language", contextTokens: 1_024, toolsEnforced: true },
  reasoning: { mode: "unavailable", efforts: [], templateKwargsAccepted: true },
};
const billing = { accountId: asId("a"), userId: asId("u"), keyId: asId("k"), factor: millicredits(1n) };
const head = { path: nodePaths.chat, requestId: asId("r"), billing } as RequestHead;
const reader = new WorkReader();
afterAll(() => reader[Symbol.asyncDispose]());

const messages = [{ role: "user", content: "hi" }];
const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`m${at}`, 1]));
const tool = (parameters: object) => ({ type: "function", function: { name: "f", parameters } });

const bodies: [name: string, where: "here" | "in the thread", body: object][] = [
  ["a chat of 100 KB", "here", { messages: [{ role: "user", content: "word ".repeat(20_000) }] }],
  ["1,000 messages", "here", { messages: Array(1_000).fill(messages[0]) }],
  ["a chat of 500 KB", "in the thread", { messages: [{ role: "user", content: "word ".repeat(100_000) }] }],
  ["a schema of 5,000 members", "in the thread", { messages, tools: [tool(members(5_000))] }],
  ["members that are never read", "in the thread", { messages, x: members(5_000) }],
];
test.each(bodies)("%s is read %s [D10]", async (_name, where, body) => {
  const text = Buffer.from(JSON.stringify(body));
  const bytes = Buffer.from(text.buffer.slice(text.byteOffset, text.byteOffset + text.length));
  const work = reader.read(head, { rules, dialects: ["vllm"] }, bytes, 0, new AbortController().signal);
  expect(bytes.length === 0 ? "in the thread" : "here").toBe(where);
  expect(await work).toBeDefined();
});
