/**
 * Engines whose HTTP is broken in any way and cut anywhere. Each broken answer ends only its own request. The
 * concurrent one, and the next on a kept connection, are complete. `WEICHE_CASES` sets the number of cases.
 */
import type { Socket } from "node:net";
import { createRandom, type Random } from "@weiche/shared/random.ts";
import { expect, test } from "vitest";
import { Rig } from "./ingress-rig.ts";
import { delta, done, httpHead, respondEvents, usageEvent } from "./scripted-engine.ts";

const cases = Number(process.env["WEICHE_CASES"] ?? 600);
const atOnce = 20;

const good = delta({ content: "Hello" }, "stop") + usageEvent(3, 1) + done;

/** Returns a complete answer in chunks of any size, with the extras that HTTP allows. */
function answerOf(random: Random): string {
  const interim = random.chance(0.2) ? "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" : "";
  const framing = random.pick(["chunked", "chunked", "length", "close"]);
  const status = random.pick([200, 200, 200, 200, 200, 200, 204, 304, 400, 500]);
  const fields = { "content-type": "text/event-stream", server: "x".repeat(random.pick([1, 1, 1, 1, 1, 20_000])) };
  if (framing === "close") return interim + httpHead(status, { ...fields, connection: "close" }) + good;
  if (framing === "length") return interim + httpHead(status, { ...fields, "content-length": good.length }) + good;
  let text = interim + httpHead(status, { ...fields, "transfer-encoding": "chunked" });
  for (let at = 0; at < good.length;) {
    const part = good.slice(at, at + 1 + random.below(80));
    text += `${part.length.toString(16)}${random.pick(["", "", ";a=b"])}\r\n${part}\r\n`;
    at += part.length;
  }
  return `${text}0\r\n${random.pick(["", "x-end: 1\r\n"])}\r\n`;
}

const insertions = [
  ...["\r\n", "\n", "\0", " ", ":", "0", "ffffffff", "-1", "content-length: 5\r\n", "transfer-encoding: chunked\r\n"],
  ...["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 101 X\r\n\r\n", "0\r\n\r\n", "data: [DONE]\n\n"],
];

function mangled(random: Random, text: string): string {
  let result = text;
  for (let changes = random.below(3); changes > 0; changes--) {
    const at = random.below(result.length + 1);
    const rest = result.slice(at + random.pick([0, 0, 1, 5]));
    result = result.slice(0, at) + random.pick(insertions) + (random.chance(0.1) ? result.slice(at) : rest);
  }
  return random.chance(0.2) ? result.slice(0, random.below(result.length)) : result;
}

/** Writes the text in pieces, and then ends the connection in any way. */
function pour(socket: Socket, random: Random, text: string): void {
  const bytes = Buffer.from(text, "latin1");
  let at = 0;
  const next = () => {
    if (socket.destroyed) return;
    if (at >= bytes.length) {
      // Last, because a request may still wait for the rest, which never comes.
      const leave = [() => socket.end(), () => socket.resetAndDestroy(), () => setTimeout(() => socket.destroy(), 20)];
      return void random.pick(leave)();
    }
    const end = random.chance(0.5) ? bytes.length : at + 1 + random.below(200);
    socket.write(bytes.subarray(at, end));
    at = end;
    setImmediate(next);
  };
  next();
}

test("whatever an engine's HTTP contains, it ends at most its own answer [C6]", async () => {
  let seed = 0;
  await using rig = await Rig.open(
    (socket, { body }) => {
      const random = createRandom(Number(body["seed"] ?? 0));
      if (body["seed"] === undefined) respondEvents(socket, good);
      else pour(socket, random, mangled(random, answerOf(random)));
    },
    { newsMsMax: 1, dialect: "openai" },
  );
  const whole = { status: 200, ending: "complete", text: expect.stringContaining("Hello") as string };
  const tallies = { whole: 0, broken: 0 };
  while (seed < cases) {
    const bad = Array.from({ length: atOnce }, () => rig.chat({ stream: seed % 2 === 0, seed: ++seed }).answer);
    const beside = rig.chat({ stream: true }).answer;
    for (const { status, text, ending } of await Promise.all(bad)) {
      const isWhole = status === 200 && ending === "complete";
      const kind = isWhole ? text : `${status} ${ending}`;
      expect(kind).toMatch(
        isWhole ? /^data: .*data: \[DONE\]\n\n$|^\{.*\}$/s : /^(?:200 error|(?:400|500|503) complete)$/,
      );
      tallies[isWhole ? "whole" : "broken"]++;
    }
    expect(await beside).toMatchObject(whole);
  }
  await rig.quiet();
  expect(rig.bugs).toEqual([]);
  expect(tallies.whole).toBeGreaterThan(cases / 10);
  expect(tallies.broken).toBeGreaterThan(cases / 10);
  // At most as many connections are kept as ran at once, and none passes bytes on to the next request.
  expect(rig.engine.sockets.size).toBeLessThanOrEqual(atOnce + 1);
  for (let n = 0; n <= atOnce; n++) expect(await rig.chat({ stream: true }).answer).toMatchObject(whole);
});
