import { describe, expect, it } from "vitest";
import { engine, start as startEngine } from "./engine-per-test.ts";
import { parseFault } from "./faults.ts";
import { ask, chat, said, type Heard } from "./sim-client.ts";

async function start(faults: string[] = []): Promise<string> {
  const origin = await startEngine({ sleepMs: 1, wakeMs: 1 });
  engine.setFaults(faults);
  return origin;
}

/** The caller's view of each fault after two tokens of a stream of five. */
const streams: Record<string, (heard: Heard) => void> = {
  cut: (heard) => {
    expect(said(heard, "content")).toBe("t0 t1 ");
    expect([heard.terminated, heard.broken]).toEqual([false, false]);
  },
  reset: (heard) => expect(heard.broken).toBe(true),
  crash: (heard) => expect(heard.broken).toBe(true),
  "error-event": (heard) => {
    expect(heard.events.at(-1)).toMatchObject({ error: { code: 500 } });
    expect(heard.terminated).toBe(true);
  },
  abort: (heard) => expect(heard.text).toContain('"finish_reason":"abort"'),
  "invalid-utf8": (heard) => expect(heard.text).toContain("\ufffd"),
  split: (heard) => expect(said(heard, "content")).toBe("ü0 ü1 ü2 ü3 ü4 "),
  "huge-event": (heard) => expect(heard.text.length).toBeGreaterThan(64 << 20),
  "not-json": (heard) => expect(heard.text).toContain('data: {"choices":[{"index":0,\n'),
  "terminator-first": (heard) => expect(heard.text.indexOf("[DONE]")).toBeLessThan(heard.text.indexOf("t4")),
  "no-terminator": (heard) => expect([said(heard, "content"), heard.terminated]).toEqual(["t0 t1 t2 t3 t4 ", false]),
  "no-finish": (heard) => expect(heard.text).not.toContain('"finish_reason":"'),
  "usage-only": (heard) => expect(heard.events.at(-1)).toMatchObject({ usage: { completion_tokens: 2 } }),
  "usage-missing": (heard) => expect(heard.text).not.toContain('"usage"'),
  "usage-null": (heard) => expect(heard.text).toContain('"usage":null'),
  "usage-negative": (heard) => expect(heard.text).toContain('"completion_tokens":-5'),
  "usage-string": (heard) => expect(heard.text).toContain('"completion_tokens":"12"'),
  "usage-fraction": (heard) => expect(heard.text).toContain('"completion_tokens":1.5'),
  "usage-infinite": (heard) => expect(heard.text).toContain('"completion_tokens":1e400'),
  "usage-unsafe": (heard) => expect(heard.text).toContain('"completion_tokens":9007199254740993'),
  "usage-large": (heard) => expect(heard.text).toContain('"completion_tokens":1000000000'),
  "usage-falling": (heard) =>
    expect(heard.text.match(/"completion_tokens":\d+/g)?.slice(0, 3)).toEqual(
      ["100", "99", "98"].map((count) => `"completion_tokens":${count}`),
    ),
  "usage-twice": (heard) => expect(heard.text.match(/"choices":\[\],"usage"/g)).toHaveLength(2),
  "usage-late": (heard) => expect(heard.text.indexOf("[DONE]")).toBeLessThan(heard.text.lastIndexOf('"usage"')),
};

it("a dying core ends all requests with the same error, and the front end refuses for another second", async () => {
  const origin = await start();
  const [dying, beside, whole] = await Promise.all([
    chat(origin, "sim:tokens=50,itl=250,fault=core-dies:2 hi"),
    chat(origin, "sim:tokens=50,itl=100 hi"),
    ask(origin, "/v1/completions", { model: "m", prompt: "sim:tokens=50,itl=100 hi" }),
  ]);
  const error = {
    error: {
      message: "EngineCore encountered an issue. See stack trace (above) for the root cause.",
      type: "InternalServerError",
      param: null,
      code: 500,
    },
  };
  for (const heard of [dying, beside]) expect([heard.events.at(-1), heard.terminated]).toEqual([error, true]);
  expect([whole.status, JSON.parse(whole.text)]).toEqual([500, error]);
  const isThere = () =>
    ask(origin, "/health").then(
      () => true,
      () => false,
    );
  expect([(await ask(origin, "/health")).status, (await chat(origin, "hi")).status]).toEqual([503, 500]);
  await expect.poll(isThere, { timeout: 5_000 }).toBe(false);
});

describe("a stream that goes wrong after two tokens", () => {
  it.each(Object.entries(streams))("%s", async (kind, expected) => {
    const options = { stream_options: { include_usage: true, continuous_usage_stats: kind !== "usage-missing" } };
    expected(await chat(await start(), `sim:tokens=5,fault=${kind}:2 hi`, options));
    await expect.poll(() => engine.state()).toMatchObject({ running: 0, waiting: 0 });
  });

  it.each(["hang", "no-newline"])("%s, until the caller leaves", async (kind) => {
    const origin = await start();
    const leaving = new AbortController();
    const asked = chat(origin, `sim:tokens=5,fault=${kind}:2 hi`, {}, { signal: leaving.signal });
    await expect.poll(() => engine.requests()[0]?.generated).toBe(2);
    leaving.abort();
    await asked.catch(() => {});
    await expect.poll(() => engine.state().running).toBe(0);
    expect(engine.requests()[0]).toMatchObject({ generated: 2, aborted: true, fault: kind });
  });
});

it.each([
  ["500", 500, "InternalServerError"],
  ["503", 503, "ServiceUnavailableError"],
  ["429", 429, "TooManyRequestsError"],
  ["overflow", 400, "maximum context length is 32768 tokens"],
  ["html", 200, "<html>"],
  ["empty", 200, ""],
])("answers %s instead", async (kind, status, text) => {
  const heard = await chat(await start([kind]), "hi");
  expect(heard.status).toBe(status);
  expect(heard.text).toContain(text);
  expect(heard.terminated).toBe(false);
});

it("announces a length and does not send it", async () => {
  expect((await chat(await start(["wrong-length"]), "hi")).broken).toBe(true);
});

it("causes a fault as often as configured and not before its token", async () => {
  const origin = await start(["cut:3*1"]);
  expect((await chat(origin, "sim:tokens=3 hi")).terminated).toBe(true);
  expect((await chat(origin, "sim:tokens=4 hi")).terminated).toBe(false);
  expect((await chat(origin, "sim:tokens=4 hi")).terminated).toBe(true);
});

it.each([
  ["500:sleep", 500],
  ["stays-awake", 200],
])("falls asleep badly: %s", async (fault, status) => {
  const origin = await start([fault]);
  expect((await ask(origin, "/sleep?level=1&mode=wait", {})).status).toBe(status);
  expect(engine.state().sleeping).toBe(false);
});

it("dies while it falls asleep or wakes", async () => {
  const origin = await start(["crash:wake"]);
  await ask(origin, "/sleep?level=1&mode=wait", {});
  await expect(ask(origin, "/wake_up", {})).rejects.toThrow("fetch failed");
  await expect(ask(origin, "/health")).rejects.toThrow("fetch failed");
});

it("accepts new faults while it runs and refuses unknown ones", async () => {
  const origin = await start();
  await ask(origin, "/sim/faults", undefined, { method: "PUT", body: '["500"]' });
  expect((await chat(origin, "hi")).status).toBe(500);
  expect(() => parseFault("explode")).toThrow(/no such fault/);
});
