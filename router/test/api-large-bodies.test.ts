/** Large bodies: read in threads, kept once, and nobody else waits for them. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bodyBytesMax } from "../src/api/read-body.ts";
import { chat, startApi } from "./api-harness.ts";

const png = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB";
const path = "/v1/chat/completions";

function image(url: string): object {
  return chat({ messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }] });
}
/** A body of exactly so many bytes. */
function padded(body: object, bytes: number): Buffer {
  const text = JSON.stringify(body);
  return Buffer.from(text.replace("AAAB", "A".repeat(bytes - text.length + 3) + "B"));
}

test("a body of exactly 20 MB is taken, and reaches the node as it came", async () => {
  await using api = await startApi();
  const body = padded(image(png), bodyBytesMax);
  expect((await api.post(path, body)).status).toBe(200);
  expect(api.nodes.sent[0]!.request.body.equals(body)).toBe(true);
});

test("one byte more is a page with 413, announced or not", async () => {
  await using api = await startApi();
  const body = padded(image(png), bodyBytesMax + 1);
  expect((await api.post(path, body)).status).toBe(413);
  const stream = new ReadableStream({
    start(controller) {
      controller.enqueue(body);
      controller.close();
    },
  });
  const headers = { authorization: "Bearer sk-good", "content-type": "application/json" };
  const init = { method: "POST", headers, body: stream, duplex: "half" } as RequestInit;
  expect((await api.fetch(path, init)).status).toBe(413);
});

const large = "x".repeat(2 << 20);
test.each([
  ["an unknown model", { model: large, messages: [] }, "messages"],
  ["a mistake", chat({ temperature: 5, user: large }), "temperature"],
  ["a link", image(`https://x.example/${large}`), "messages[0].content[0].image_url.url"],
  ["an image that is none", image(`data:image/png;base64,${large}`), "messages[0].content[0].image_url.url"],
  ["too large an answer", chat({ max_tokens: 99_999, user: large }), "max_tokens"],
])("a large body with %s is refused like a small one", async (_name, body, param) => {
  await using api = await startApi();
  const { status, json } = await api.post(path, body);
  expect([status, json.error.param]).toEqual([400, param]);
});

test.each([
  "{",
  `{"a":"${large}","a":1}`,
  `{"__proto__":"${large}"}`,
  `["${large}\\ud800"]`,
  Buffer.alloc(2 << 20, 0xff),
])("a large body that is not sound JSON is refused (%#)", async (body) => {
  await using api = await startApi();
  const { status, json } = await api.post(path, body);
  expect([status, json.error.param]).toEqual([400, null]);
});

test("large and small bodies with the same beginning share an affinity", async () => {
  await using api = await startApi();
  for (const more of [{}, { user: large }]) await api.post(path, chat(more));
  const long = { messages: [{ role: "user", content: `${"é\\n".repeat(9_000)}${large}` }] };
  for (const more of [long, { ...long, user: large }]) await api.post(path, chat(more));
  const [a, b, c, d] = api.placement.asked.map(({ affinityKey }) => affinityKey);
  expect([a, c]).toEqual([b, d]);
});

/** In a process of its own: what it used and how late its event loop was, once all of these were answered. */
async function measured(bodies: readonly Buffer[], heldUntil = 0) {
  const child = fork(join(import.meta.dirname, "api-process.ts"), [String(heldUntil)], { execArgv: [] });
  try {
    const [{ port }] = (await once(child, "message")) as [{ port: number }];
    const statuses = await Promise.all(bodies.map((body) => send(port, body)));
    child.send("measure");
    const [facts] = (await once(child, "message")) as [{ rssBytes: number; lagMs: number; failures: string[] }];
    expect(facts.failures).toEqual([]);
    return { ...facts, statuses: new Set(statuses) };
  } finally {
    child.kill("SIGKILL");
  }
}

test("64 bodies of 20 MB at once leave room for the rest in 1.5 GB, and the event loop is never late by more than 250 ms", async () => {
  const atOnce = 64;
  const body = padded(image(png), 20_000_000);
  const { statuses, rssBytes, lagMs } = await measured(Array<Buffer>(atOnce).fill(body), atOnce / 2);
  expect(statuses).toEqual(new Set([200]));
  expect(rssBytes).toBeLessThan(1.35e9);
  expect(lagMs).toBeLessThan(250);
}, 120_000);

const ones = (bytes: number) => Array<number>((bytes - 200) / 2).fill(1);
const mistakes: readonly ((bytes: number) => Record<string, unknown>)[] = [
  (bytes) => ({ messages: ones(bytes) }),
  (bytes) => ({ messages: [{ role: "user", content: ones(bytes) }] }),
  (bytes) => ({ messages: [{ role: "assistant", tool_calls: ones(bytes) }] }),
  (bytes) => ({ tools: ones(bytes) }),
  (bytes) => ({ stop: ones(bytes) }),
];
test("of a body that is full of mistakes only the first one costs time", async () => {
  const bodies = [1 << 20, 6_000_000].flatMap((bytes) =>
    mistakes.map((body) => Buffer.from(JSON.stringify(chat(body(bytes))))),
  );
  const { statuses, rssBytes, lagMs } = await measured(bodies);
  expect(statuses).toEqual(new Set([400]));
  expect(rssBytes).toBeLessThan(1e9);
  expect(lagMs).toBeLessThan(500);
}, 120_000);

/** Over a socket of our own, so that the client does not copy the body either. */
async function send(port: number, body: Buffer): Promise<number> {
  const socket = connect(port, "127.0.0.1");
  const head = [
    `POST ${path} HTTP/1.1`,
    "host: x",
    "authorization: Bearer sk-good",
    "content-type: application/json",
    "connection: close",
    `content-length: ${body.length}`,
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  socket.write(body);
  let received = "";
  for await (const chunk of socket) received += String(chunk);
  return Number(received.slice(9, 12));
}
