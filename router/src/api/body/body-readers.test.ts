/** Tests which bodies are parsed on the main thread, and which in the worker thread. The body is lent to the worker. */
import { afterAll, expect, test } from "vitest";
import { ByteBudget } from "@weiche/shared/http/byte-budget.ts";
import { nodePaths, type NodePath } from "@weiche/shared/node-protocol.ts";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { BodyReaders } from "./body-readers.ts";
import type { Exchange } from "../exchange.ts";
import { HeldBody } from "./held-body.ts";

const { chat, embeddings } = nodePaths;
const messages = [{ role: "user", content: "hi" }];
const tool = (name: number) => ({
  type: "function",
  function: {
    name: `tool-${name}`,
    description: "Looks something up.",
    parameters: {
      type: "object",
      properties: Object.fromEntries(
        Array.from({ length: 10 }, (_, at) => [`p${at}`, { type: "string", description: "A word." }]),
      ),
      required: ["p0", "p1"],
    },
  },
});
const many = <T>(count: number, make: (at: number) => T) => Array.from({ length: count }, (_, at) => make(at));
const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)]);

const readers = new BodyReaders();
afterAll(() => readers[Symbol.asyncDispose]());

/** Reads a body and returns where it was parsed. */
async function read(path: NodePath, body: object): Promise<{ where: string; refused: string | undefined }> {
  const { signal } = new AbortController();
  const held = new HeldBody(
    new ByteBudget(1 << 30, 1 << 20, new VirtualClock()),
    { signal, onSettled() {} } as unknown as Exchange,
    asId<AccountId>("account"),
  );
  const text = JSON.stringify({ model: "m", ...body });
  held.fill(Buffer.from(text));
  const facts = readers.read(path, held, signal);
  const where = held.bytes ? "at once" : "in the thread";
  const refused = await facts.then(
    () => undefined,
    (error: Error) => error.message,
  );
  expect(held.bytes!.toString() === text, "the node gets the original bytes").toBe(true);
  return { where, refused };
}

const ordinary: [name: string, path: NodePath, body: object][] = [
  ["a short chat", chat, { messages }],
  ["a chat of 100 KB", chat, { messages: [{ role: "user", content: "word ".repeat(20_000) }] }],
  ["300 messages and 40 tools", chat, { messages: many(300, () => messages[0]), tools: many(40, tool) }],
  ["a chat with a logit_bias of 300 tokens", chat, { messages, logit_bias: many(300, (at) => at) }],
  ["2,048 texts for embeddings", embeddings, { input: many(2_048, (at) => `text ${at}`) }],
];
test.each(ordinary)("%s is parsed at once [D10]", async (_name, path, body) => {
  expect(await read(path, body)).toEqual({ where: "at once", refused: undefined });
});

const heavy: [name: string, path: NodePath, body: object][] = [
  ["a chat of 500 KB", chat, { messages: [{ role: "user", content: "word ".repeat(100_000) }] }],
  ["5,000 messages", chat, { messages: many(5_000, () => messages[0]) }],
  ["50 KB of arrays 60 deep", chat, { messages, x: many(400, () => nested(60)) }],
  ["an object of 5,000 members", chat, { messages, x: Object.fromEntries(many(5_000, (at) => [`m${at}`, 1])) }],
  ["5,000 objects of one member each", chat, { messages, x: many(5_000, (at) => ({ [`m${at}`]: 1 })) }],
  ["150 tools with their schemas", chat, { messages, tools: many(150, tool) }],
  ["long texts for embeddings", embeddings, { input: many(64, () => "word ".repeat(4_000)) }],
];
test.each(heavy)("%s is parsed in the worker thread [D10]", async (_name, path, body) => {
  expect(await read(path, body)).toEqual({ where: "in the thread", refused: undefined });
});

test("a body with too many values is refused, and the message has the maximum [D10]", async () => {
  expect(await read(chat, { messages, x: many(200_000, () => []) })).toEqual({
    where: "in the thread",
    refused: "The body has more than 32768 values (members of objects and items of arrays).",
  });
});
