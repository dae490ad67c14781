/** Tests large bodies. They are read in threads, kept once, and delay no other request. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { lightValuesMax, valuesMax } from "@weiche/shared/http/json-guard.ts";
import { bodyBytesMax } from "../../src/api/body/body-receiver.ts";
import { asId } from "@weiche/shared/ids.ts";
import { caller, chat, startApi } from "./api-harness.ts";

const png = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB";
const path = "/v1/chat/completions";

function image(url: string): object {
  return chat({ messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }] });
}
/** Returns a body of exactly this number of bytes. */
function padded(body: object, bytes: number): Buffer {
  const text = JSON.stringify(body);
  return Buffer.from(text.replace("AAAB", "A".repeat(bytes - text.length + 3) + "B"));
}

test("a body of exactly 20 MB is accepted and reaches the node unchanged [S19.7]", async () => {
  await using api = await startApi();
  const body = padded(image(png), bodyBytesMax);
  expect((await api.post(path, body)).status).toBe(200);
  expect(api.nodes.sent[0]!.request.body.equals(body)).toBe(true);
});

test("one byte more gets a page with 413, whether the length is announced or not [S19.7]", async () => {
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

test("announced bodies of four accounts that never arrive take no memory that another account needs [D10 S19.8]", async () => {
  await using api = await startApi();
  const sockets: Socket[] = [];
  const announce = async (account: string, bytes: number, count = 1) => {
    api.keys.set(`sk-${account}`, caller({ accountId: asId(account) }));
    for (let n = 0; n < count; n++) {
      const socket = connect(api.port, "127.0.0.1").on("error", () => {});
      socket.write(`${head(`content-length: ${bytes}`, `sk-${account}`)}{`);
      sockets.push(socket);
    }
    await expect.poll(() => api.limiter.running, { timeout: 20_000 }).toBe(sockets.length);
  };
  // If bodies held their announced sizes, three would hold all memory, and the fourth would hold the memory that is
  // kept apart and the rest.
  for (const account of ["a", "b", "c"]) await announce(account, bodyBytesMax, 20);
  await announce("d", bodyBytesMax);
  await announce("d", 14_000_000);
  expect((await api.post(path, padded(image(png), 2_000_000))).status).toBe(200);
  expect((await api.post(path, padded(image(png), bodyBytesMax))).status).toBe(200);
  for (const socket of sockets) socket.destroy();
}, 29_000);

test("bodies without an announced length reserve no memory before they are large", async () => {
  await using api = await startApi();
  const small = JSON.stringify(chat());
  const trickling = Array.from({ length: 64 }, () => connect(api.port, "127.0.0.1"));
  for (const socket of trickling) {
    socket.write(head("transfer-encoding: chunked"));
    socket.write(`${small.length.toString(16)}\r\n${small.slice(0, 10)}`);
  }
  await expect.poll(() => api.limiter.use(caller().accountId).parallel).toBe(64);
  expect((await api.post(path, padded(image(png), bodyBytesMax))).status).toBe(200);
  for (const socket of trickling) socket.write(`${small.slice(10)}\r\n0\r\n\r\n`);
  await expect.poll(() => api.finished.length).toBe(65);
  for (const socket of trickling) socket.destroy();
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

/** Sends bodies to a server in its own process. Returns its memory and the longest time that its event loop was busy. */
async function measured(
  bodies: readonly Buffer[],
  { heldUntil = 0, isAnnounced = (_n: number): boolean => true } = {},
) {
  const child = fork(join(import.meta.dirname, "api-process.ts"), [String(heldUntil)], { execArgv: [] });
  try {
    const [{ port }] = (await once(child, "message")) as [{ port: number }];
    const ask = async (body: Buffer, n: number): Promise<number> => {
      const status = await send(port, body, isAnnounced(n), accounts[n % accounts.length]!);
      // On a slow machine a body may wait for room for more than 30 s. Its client then sends it again.
      return status === 503 ? ask(body, n) : status;
    };
    const statuses = await Promise.all(bodies.map(ask));
    child.send("measure");
    const [facts] = (await once(child, "message")) as [{ rssBytes: number; workMs: number; failures: string[] }];
    expect(facts.failures).toEqual([]);
    return { ...facts, statuses: new Set(statuses) };
  } finally {
    child.kill("SIGKILL");
  }
}

const accounts = ["sk-good", "sk-b", "sk-c", "sk-d"];
test("64 simultaneous bodies of 20 MB fit in 1.5 GB and never occupy the event loop for more than 100 ms [D4 S19.8]", async () => {
  const atOnce = 64;
  const body = padded(image(png), 20_000_000);
  const half = { heldUntil: atOnce / 2, isAnnounced: (n: number) => n % 2 === 0 };
  const { statuses, rssBytes, workMs } = await measured(Array<Buffer>(atOnce).fill(body), half);
  expect(statuses).toEqual(new Set([200]));
  expect(rssBytes).toBeLessThan(1.35e9);
  expect(workMs).toBeLessThan(100);
}, 120_000);

const ones = (count: number) => Array<number>(count).fill(1);
const mistakes: readonly ((count: number) => Record<string, unknown>)[] = [
  (count) => ({ messages: ones(count) }),
  (count) => ({ messages: [{ role: "user", content: ones(count) }] }),
  (count) => ({ messages: [{ role: "assistant", tool_calls: ones(count) }] }),
  (count) => ({ tools: ones(count) }),
  (count) => ({ stop: ones(count) }),
];
test("checking a body stops at its first mistake [D4 S19.8]", async () => {
  const bodies = [lightValuesMax - 100, valuesMax - 100, 3_000_000].flatMap((count) =>
    mistakes.map((body) => Buffer.from(JSON.stringify(chat(body(count))))),
  );
  const { statuses, rssBytes, workMs } = await measured(bodies);
  expect(statuses).toEqual(new Set([400]));
  expect(rssBytes).toBeLessThan(1e9);
  expect(workMs).toBeLessThan(500);
}, 120_000);

/** Sends a body over a plain socket, so that the client does not copy the body. */
async function send(port: number, body: Buffer, isAnnounced: boolean, key: string): Promise<number> {
  const socket = connect(port, "127.0.0.1");
  socket.write(head(isAnnounced ? `content-length: ${body.length}` : "transfer-encoding: chunked", key));
  if (!isAnnounced) socket.write(`${body.length.toString(16)}\r\n`);
  socket.write(body);
  if (!isAnnounced) socket.write("\r\n0\r\n\r\n");
  let received = "";
  for await (const chunk of socket) received += String(chunk);
  return Number(received.slice(9, 12));
}

function head(length: string, key = "sk-good"): string {
  const lines = [
    `POST ${path} HTTP/1.1`,
    "host: x",
    `authorization: Bearer ${key}`,
    "content-type: application/json",
    "connection: close",
    length,
  ];
  return `${lines.join("\r\n")}\r\n\r\n`;
}
