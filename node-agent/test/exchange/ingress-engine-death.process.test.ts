/** An engine that dies while requests run. Each router learns of it, so that it can count which bodies were there. */
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { ends } from "@weiche/shared/frames/frame.ts";
import { Rig, until, type Sent } from "./ingress-rig.ts";
import { delta, endEvents, event, httpHead, respond, saying, writeChunk } from "./scripted-engine.ts";
import type { EngineScript } from "./scripted-engine.ts";

const word = delta({ content: "word " });

/** Returns the death in the END frame of the answer. */
async function deathOf({ answer }: Sent): Promise<unknown> {
  const { code } = await answer;
  return code === ends.engineDiedAlone ? "alone" : code === ends.engineDiedShared ? "shared" : undefined;
}

test.each([
  ["alone", 1],
  ["shared", 3],
])(
  "before the first byte a dead engine is a 500 engine_died, and the death is %s with %s running [C7]",
  async (death, requests) => {
    await using rig = await Rig.open(() => {});
    const sent = Array.from({ length: requests }, () => rig.chat({ stream: true }));
    const deaths = sent.map(deathOf);
    await until(() => rig.engine.asked.length === requests, "the engine to have all of them");
    rig.slot.loseEngine();
    for (const { answer } of sent) {
      const { status, text } = await answer;
      expect([status, JSON.parse(text).error.code]).toEqual([500, "engine_died"]);
    }
    expect(await Promise.all(deaths)).toEqual(sent.map(() => death));
    expect(rig.outbox.records).toEqual([]);
  },
);

test("after the first byte the error event is engine_died, and the END frame contains the death [C7]", async () => {
  await using rig = await Rig.open(saying(word));
  const sent = rig.chat({ stream: true });
  const death = deathOf(sent);
  await once(sent.stream, "data");
  rig.slot.loseEngine();
  const { text, ending } = await sent.answer;
  expect([ending, await death]).toEqual(["error", "alone"]);
  expect(text).toContain('"code":"engine_died"');
});

test.each([
  ["whose exit becomes known a moment later has died", true, "engine_died"],
  ["that lives on has not died", false, "500"],
])("an engine that loses its connection and %s", async (_name, dies, code) => {
  await using rig = await Rig.open(saying(word));
  const { stream, answer } = rig.chat({ stream: true });
  await once(stream, "data");
  rig.engine.asked[0]!.resetAndDestroy();
  if (dies) setTimeout(() => rig.slot.loseEngine(), 20);
  const { text, ending } = await answer;
  expect(ending).toBe("error");
  expect(text).toContain(`"code":"${code}"`);
});

test.each([
  ["a chunk", "keep-alive"],
  ["a chunk", "close"],
  ["a body", "close"],
])("half of %s from a killed engine is a lost connection, not a malformed answer (%s)", async (what, connection) => {
  const framing: Record<string, string | number> =
    what === "a chunk" ? { "transfer-encoding": "chunked" } : { "content-length": 10_000 };
  const script: EngineScript = (socket) => {
    socket.write(httpHead(200, { "content-type": "text/event-stream", connection, ...framing }));
    socket.end(what === "a chunk" ? "400\r\ndata: {" : word);
  };
  await using rig = await Rig.open(script, { newsMsMax: 0 });
  await rig.chat({ stream: true }).answer;
  expect(rig.faults).toEqual([expect.stringMatching(/^connection lost: /)]);
});

/** The event that vLLM's HTTP front sends when its core is gone. */
const dead = {
  error: {
    message: "EngineCore encountered an issue. See stack trace (above) for the root cause.",
    type: "InternalServerError",
    param: null,
    code: 500,
  },
};

describe("an engine that reports that its core died", () => {
  test.each([
    ["with an event in mid-stream", event(dead)],
    ["with an event and the terminator", `${event(dead)}data: [DONE]\n\n`],
  ])("%s is lost at once, for all its requests [C7]", async (_name, says) => {
    await using rig = await Rig.open(saying(word));
    const sent = [rig.chat({ stream: true }), rig.chat({ stream: true })];
    const deaths = sent.map(deathOf);
    await Promise.all(sent.map(({ stream }) => once(stream, "data")));
    writeChunk(rig.engine.asked[0]!, says);
    endEvents(rig.engine.asked[0]!);
    for (const { answer } of sent) expect((await answer).text).toContain('"code":"engine_died"');
    expect(await Promise.all(deaths)).toEqual(["shared", "shared"]);
    expect([rig.slot.lost, rig.slot.suspected]).toEqual([["core died"], []]);
  });

  test("with a status of 500 is lost because of the request that it worked on", async () => {
    await using rig = await Rig.open((socket) => respond(socket, 500, JSON.stringify(dead)), { dialect: "vllm" });
    const sent = rig.chat();
    const death = deathOf(sent);
    const { status, text } = await sent.answer;
    expect([status, JSON.parse(text).error.code, await death]).toEqual([500, "engine_died", "alone"]);
    expect([rig.slot.lost, rig.outbox.records]).toEqual([["core died"], []]);
  });

  test.each([
    ["another failure", { ...dead.error, message: "Internal server error" }, 500],
    ["a refusal that quotes these words", { ...dead.error, message: `Invalid: ${dead.error.message}` }, 500],
    ["a status that blames the request", dead.error, 400],
  ])("is not one with %s", async (_name, error, status) => {
    await using rig = await Rig.open((socket) => respond(socket, status, JSON.stringify({ error })), {
      dialect: "vllm",
    });
    expect((await rig.chat().answer).status).toBe(status);
    expect(rig.slot.lost).toEqual([]);
  });
});

test("a client that leaves while the exit is awaited pays nothing for the broken answer", async () => {
  await using rig = await Rig.open(saying(word));
  const { stream } = rig.chat({ stream: true });
  await once(stream, "data");
  rig.engine.asked[0]!.resetAndDestroy();
  setTimeout(() => stream.cancel(), 20);
  expect(await rig.records()).toMatchObject([{ outcome: "broken", completionTokens: 0 }]);
});
