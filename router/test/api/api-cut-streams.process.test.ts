/** Recorded answers that are cut at any byte never look whole. */
import { beforeAll, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { chat, startApi, type SimAnswer } from "./api-harness.ts";
import { RawClient, rawPost, until } from "../edge/raw-client.ts";

const api = await forThisFile(startApi());
beforeAll(async () => {
  api.placement.names = ["n1"];
  api.nodes.script = (request) => answers[(JSON.parse(request.body.toString()) as { seed: number }).seed]!;
});

const events = [
  'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Grüße"}}]}\n\n',
  'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
  "data: [DONE]\n\n",
];
const stream = Buffer.from(events.join(""));
/** The answers. The seed of a request is the index of its answer. */
const answers: SimAnswer[] = [];

/** Returns the body of a chunked answer, and whether its end has arrived. */
function chunked(received: string): { text: string; ended: boolean } {
  let at = received.indexOf("\r\n\r\n") + 4;
  let text = "";
  for (;;) {
    const lineEnd = received.indexOf("\r\n", at);
    const length = Number.parseInt(received.slice(at, lineEnd), 16);
    if (lineEnd < 0 || !(length > 0)) return { text: Buffer.from(text, "latin1").toString(), ended: length === 0 };
    text += received.slice(lineEnd + 2, lineEnd + 2 + length);
    at = lineEnd + 4 + length;
  }
}

async function askRaw(answer: SimAnswer): Promise<string> {
  const body = JSON.stringify(chat({ stream: true, seed: answers.push(answer) - 1 }));
  const client = new RawClient(api.port).send(rawPost("/v1/chat/completions", body, ["connection: close"]));
  return client.all();
}

/** Sends each byte in its own turn of the event loop. */
function* slowly(bytes: Buffer): Generator<Buffer | Promise<unknown>> {
  for (const byte of bytes) {
    yield Buffer.of(byte);
    yield new Promise((resolve) => setImmediate(resolve));
  }
}

const cuts = Array.from({ length: stream.length }, (_, at) => at + 1);

test.each(["broken", "failing", "byte by byte"])(
  "a stream that is cut at any byte (%s) ends in an error event and without its end [C2 S6.7]",
  async (how) => {
    const offsets = how === "byte by byte" ? cuts.filter((at) => at % 17 === 0) : cuts;
    await inTurns(offsets, async (cut) => {
      const part = stream.subarray(0, cut);
      const answer = {
        kind: "events" as const,
        chunks: how === "byte by byte" ? slowly(part) : [part],
        ending: "broken" as const,
      };
      const received = await askRaw(how === "failing" ? { ...answer, failing: true } : answer);
      expect(isHonest(received, part)).toBe(true);
    });
    await until(() => api.nodes.open === 0);
    expect(api.left.length).toBe(api.finished.length);
  },
);

/** Returns whether the answer is a 500 if no event was complete, or all complete events and an error event without an end. */
function isHonest(received: string, part: Buffer): boolean {
  const whole = events
    .filter((_, index) => Buffer.byteLength(events.slice(0, index + 1).join("")) <= part.length)
    .join("");
  if (whole === "") return received.startsWith("HTTP/1.1 500 ");
  const { text, ended } = chunked(received);
  if (ended || !text.startsWith(whole)) return false;
  const error = /^data: (\{"error":\{[^\n]*\}\})\n\n$/.exec(text.slice(whole.length))?.[1];
  return error !== undefined && (JSON.parse(error) as { error: { code: string } }).error.code === "500";
}

test("an event longer than the router's buffer passes in pieces and, if cut, is closed before the error event", async () => {
  const long = [
    Buffer.from(events[0]!),
    Buffer.from('data: "'),
    ...Array.from({ length: 60 }, () => Buffer.alloc(16_384, 65)),
  ];
  const { text, ended } = chunked(await askRaw({ kind: "events", chunks: long, ending: "broken" }));
  expect(ended).toBe(false);
  const all = text.split("\n\n");
  expect(all.length).toBe(4);
  expect(all[2]).toMatch(/^data: \{"error"/);
  const { text: complete } = chunked(await askRaw({ kind: "events", chunks: [...long, '"\n\ndata: [DONE]\n\n'] }));
  expect(complete).toBe(`${Buffer.concat(long).toString()}"\n\ndata: [DONE]\n\n`);
});

test("the router adds no second error event after the node's own, and cuts the connection", async () => {
  const told = [events[0]!, 'data: {"error":{"message":"m","type":"server_error","param":null,"code":"500"}}\n\n'];
  const { text, ended } = chunked(await askRaw({ kind: "events", chunks: told, ending: "error" }));
  expect([text, ended]).toEqual([told.join(""), false]);
});

test("a JSON answer that is cut never looks complete [C2]", async () => {
  const whole = Buffer.from(JSON.stringify({ choices: [{ message: { content: "x".repeat(200) } }] }));
  await inTurns([5, 100, whole.length - 1, whole.length], async (cut) => {
    const parts = [
      whole.subarray(0, cut >> 1),
      new Promise((resolve) => setImmediate(resolve)),
      whole.subarray(cut >> 1, cut),
    ];
    const received = await askRaw({ chunks: parts, ending: "broken" });
    expect(received).toMatch(/^HTTP\/1.1 200 /);
    expect(received).not.toMatch(/content-length/i);
    expect(chunked(received).ended).toBe(false);
  });
});

test("complete answers end normally", async () => {
  const { text, ended } = chunked(await askRaw({ kind: "events", chunks: slowly(stream) }));
  expect([text, ended]).toEqual([stream.toString(), true]);
});

/** Runs a task for each item, eight at a time. */
async function inTurns<T>(items: readonly T[], task: (item: T) => unknown): Promise<void> {
  const queue = [...items];
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let item = queue.shift(); item !== undefined; item = queue.shift()) await task(item);
    }),
  );
}
