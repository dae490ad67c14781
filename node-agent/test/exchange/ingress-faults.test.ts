/** What the router is told of a fault, and when faults in a row make the engine suspect. */
import { describe, expect, test } from "vitest";
import { ends } from "@weiche/shared/frames/frame.ts";
import { Rig } from "./ingress-rig.ts";
import { delta, done, respond, respondEvents, saying, type EngineScript } from "./scripted-engine.ts";

const whole = delta({ content: "x" }, "stop") + done;
const word = delta({ content: "x" });
const broken: EngineScript = (socket) => respond(socket, 500, '{"error":{"message":"CUDA error"}}');

test.each<[string, EngineScript, number, number]>([
  ["an engine's 500", broken, 500, ends.nodeFailed],
  ["an answer that is malformed", (socket) => respondEvents(socket, "data: {\n\n"), 500, ends.nodeFailed],
  ["an answer without its end", (socket) => respondEvents(socket, ""), 500, ends.nodeFailed],
  // The rig's engine is an external one: nobody sees whether it died.
  ["a connection that breaks", (socket) => socket.destroy(), 500, ends.engineLost],
  ["the request's own mistake", (socket) => respond(socket, 400, '{"error":{"message":"no"}}'), 400, ends.complete],
  ["an engine without room", (socket) => respond(socket, 503, "{}"), 503, ends.complete],
])(
  "before the first byte, %s ends the answer so that the router knows whether to ask another node",
  async (...given) => {
    const [, script, status, code] = given;
    await using rig = await Rig.open(script, { newsMsMax: 1 });
    expect(await rig.chat({ stream: true }).answer).toMatchObject({ status, code });
    expect(rig.outbox.records).toEqual([]);
  },
);

test("after it, too", async () => {
  await using rig = await Rig.open((socket) => respondEvents(socket, word), { newsMsMax: 1 });
  expect(await rig.chat({ stream: true }).answer).toMatchObject({ status: 200, code: ends.nodeFailed });
});

test("a bug of the agent ends so, too", async () => {
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

  test("three times in a row for two accounts is suspected, although its probe passes", async () => {
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
