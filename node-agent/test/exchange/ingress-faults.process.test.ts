/** Tests the END that a router gets after a fault, and the number of faults in a row that make an engine suspected. */
import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { ends } from "@weiche/shared/frames/frame.ts";
import { Rig } from "./ingress-rig.ts";
import {
  delta,
  done,
  event,
  respond,
  respondEvents,
  saying,
  writeChunk,
  type EngineScript,
} from "./scripted-engine.ts";

const whole = delta({ content: "x" }, "stop") + done;
const word = delta({ content: "x" });
const broken: EngineScript = (socket) => respond(socket, 500, '{"error":{"message":"CUDA error"}}');

test.each<[string, EngineScript, number, number]>([
  ["an engine's 500", broken, 500, ends.nodeFailed],
  ["an answer that is malformed", (socket) => respondEvents(socket, "data: {\n\n"), 500, ends.nodeFailed],
  ["an answer without its end", (socket) => respondEvents(socket, ""), 500, ends.nodeFailed],
  // The rig's engine is external, so its exit cannot be seen.
  ["a connection that breaks", (socket) => socket.destroy(), 500, ends.engineLost],
  [
    "the request's own mistake",
    (socket) => respond(socket, 400, '{"error":{"message":"no"}}'),
    400,
    ends.engineRefused,
  ],
  ["an engine without room", (socket) => respond(socket, 503, "{}"), 503, ends.complete],
])(
  "before the first byte, %s ends the answer so that the router knows whether to try another node",
  async (...given) => {
    const [, script, status, code] = given;
    await using rig = await Rig.open(script, { newsMsMax: 1 });
    expect(await rig.chat({ stream: true }).answer).toMatchObject({ status, code });
    expect(rig.outbox.records).toEqual([]);
  },
);

const gaveUp = event({ error: { code: 500 } });

/** The connection on which an engine with the script `begin` answers. */
let answering: Socket;
const begin: EngineScript = (socket) => {
  answering = socket;
  saying(word)(socket);
};

/** Requests a stream. The engine sends `rest` once the client has its first output. */
async function breakOff(rig: Rig, rest: string, account = "account-1") {
  const { stream, answer } = rig.chat({ stream: true }, { account });
  stream.once("data", () => writeChunk(answering, rest));
  return await answer;
}

test.each([
  ["an end by the engine itself", delta({}, "abort") + done, ends.nodeFailed],
  ["an event that is malformed", "data: {\n\n", ends.engineLost],
  ["an error that the engine reports", gaveUp, ends.engineLost],
])("after output, %s ends the answer so that no request can cause much output twice", async (_name, rest, code) => {
  await using rig = await Rig.open(begin, { newsMsMax: 1 });
  expect(await breakOff(rig, rest)).toMatchObject({ status: 200, code });
  const { answer } = rig.chat({ stream: false });
  await expect.poll(() => rig.ingress.requests()[0]?.completionTokens).toBe(1);
  writeChunk(answering, rest);
  expect(await answer).toMatchObject({ status: 500, code });
});

test("a bug of the agent ends in the same way", async () => {
  await using rig = await Rig.open(whole);
  rig.slot.refusal = new TypeError("a bug") as never;
  expect(await rig.chat().answer).toMatchObject({ status: 500, code: ends.nodeFailed });
});

describe("an engine whose requests fail", () => {
  /** Fails requests and answers probes, or fails both. */
  const failing =
    (probed: boolean): EngineScript =>
    (socket, { path }) => {
      if (path === "/v1/chat/completions") return broken(socket, { path } as never);
      if (!probed) return respond(socket, 500, "{}");
      if (path !== "/v1/completions") return respond(socket, 404, "{}");
      return respond(socket, 200, '{"choices":[{"text":"x","finish_reason":"length"}]}');
    };
  async function fail(rig: Rig, ...accounts: string[]): Promise<void> {
    for (const account of accounts) expect((await rig.chat({}, { account }).answer).status).toBe(500);
  }

  test("three times in a row for two accounts is suspected, although its probe passes [C8]", async () => {
    await using rig = await Rig.open(failing(true));
    await fail(rig, "account-1", "account-2");
    expect(rig.slot.suspected).toEqual([]);
    await fail(rig, "account-1");
    expect(rig.slot.suspected).toEqual(["failing"]);
  });

  test("for one account alone is suspected only if its probe fails", async () => {
    await using sound = await Rig.open(failing(true));
    await fail(sound, ...Array.from({ length: 10 }, () => "account-1"));
    await using unsound = await Rig.open(failing(false));
    await fail(unsound, "account-1", "account-1", "account-1");
    await expect.poll(() => unsound.slot.suspected).toEqual(["failing"]);
    expect(sound.slot.suspected).toEqual([]);
  });

  describe.each([
    ["malformed events", "data: {\n\n"],
    ["errors", gaveUp],
  ])("after it has sent output, by %s", (_name, rest) => {
    /** Returns the outcomes and output tokens of streams of these accounts, one after another. */
    async function billed(rig: Rig, ...accounts: string[]) {
      for (const account of accounts) await breakOff(rig, rest, account);
      return (await rig.records()).map(({ outcome, completionTokens }) => `${outcome} ${completionTokens}`);
    }
    const script: EngineScript = (socket, saw) =>
      saw.path === "/v1/chat/completions" ? begin(socket, saw) : failing(true)(socket, saw);

    test("is suspected once five accounts have met it, and answers are free from then on [C8]", async () => {
      await using rig = await Rig.open(script, { newsMsMax: 1 });
      const outcomes = await billed(rig, ...[1, 2, 3, 4, 5, 1].map((n) => `account-${n}`));
      expect(outcomes).toEqual([...Array.from({ length: 4 }, () => "limit-ended 1"), "broken 0", "broken 0"]);
      expect(rig.slot.suspected).toEqual(["failing"]);
    });

    test("is suspected once it also fails its probe, and answers are free from then on", async () => {
      await using rig = await Rig.open(
        (socket, saw) => (saw.path === "/v1/chat/completions" ? begin(socket, saw) : failing(false)(socket, saw)),
        { newsMsMax: 1 },
      );
      await billed(rig, "account-1", "account-2", "account-1");
      await expect.poll(() => rig.slot.suspected).toEqual(["failing"]);
      expect((await billed(rig, "account-2")).at(-1)).toBe("broken 0");
    });

    test("is paid for by two accounts, which may belong to one person, while its probe passes [C8]", async () => {
      await using rig = await Rig.open(script, { newsMsMax: 1 });
      const outcomes = await billed(rig, ...[1, 2, 1, 2, 1, 2].map((n) => `account-${n}`));
      expect(outcomes).toEqual(Array.from({ length: 6 }, () => "limit-ended 1"));
      expect(rig.slot.suspected).toEqual([]);
    });

    test("is paid for by a single account, which may provoke it, while its probe passes", async () => {
      await using rig = await Rig.open(script, { newsMsMax: 1 });
      const outcomes = await billed(rig, ...Array.from({ length: 6 }, () => "account-1"));
      expect(outcomes).toEqual(Array.from({ length: 6 }, () => "limit-ended 1"));
      expect(rig.slot.suspected).toEqual([]);
    });
  });

  test("now and then is not suspected", async () => {
    let asked = 0;
    await using rig = await Rig.open((socket, saw) =>
      asked++ % 3 === 2 ? saying(whole)(socket) : broken(socket, saw),
    );
    for (let time = 0; time < 12; time++) await rig.chat({}, { account: `account-${time}` }).answer;
    expect(rig.slot.suspected).toEqual([]);
  });

  test("because of the requests is not suspected", async () => {
    await using rig = await Rig.open((socket) => respond(socket, 400, '{"error":{"message":"no"}}'));
    for (let time = 0; time < 9; time++) await rig.chat({}, { account: `account-${time}` }).answer;
    expect(rig.slot.suspected).toEqual([]);
  });
});
