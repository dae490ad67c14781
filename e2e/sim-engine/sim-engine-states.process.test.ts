/** Tests the simulated engine while it loads and sleeps, and its counts of its work. */
import { describe, expect, it } from "vitest";
import { engine, start, until, usage } from "./engine-per-test.ts";
import { ask, chat, said } from "./sim-client.ts";

describe("loading", () => {
  it("refuses connections until it is ready", async () => {
    const origin = await start({ startMs: 60 });
    await expect(ask(origin, "/health")).rejects.toThrow("fetch failed");
    await engine.ready;
    expect((await ask(origin, "/v1/models")).text).toContain('"max_model_len":32768');
  });

  it("never ends with the fault `never-ready`", async () => {
    const origin = await start({ faults: ["never-ready"] });
    await expect(ask(origin, "/health")).rejects.toThrow("fetch failed");
    expect(engine.state().loaded).toBe(false);
  });
});

describe("sleep", () => {
  it("lets requests wait until the engine wakes", async () => {
    const origin = await start();
    await ask(origin, "/sleep?level=1&mode=wait", {});
    expect((await ask(origin, "/is_sleeping")).text).toBe('{"is_sleeping":true}');
    expect((await ask(origin, "/health")).status).toBe(200);
    expect((await ask(origin, "/metrics")).text).toMatch(/sleep_state="weights_offloaded"} 1/);
    const asked = chat(origin, "sim:tokens=2 hi");
    await until(() => engine.state().waiting === 1);
    await ask(origin, "/wake_up", {});
    expect(said(await asked, "content")).toBe("t0 t1 ");
  });

  it("lets running answers end first in mode wait, and by default aborts them and notes it", async () => {
    const origin = await start({ itlMs: 2 });
    const first = chat(origin, "sim:tokens=50 hi", usage);
    await until(() => engine.state().running === 1);
    await ask(origin, "/sleep?level=1&mode=wait", {});
    expect((await first).events.at(-1)).toMatchObject({ usage: { completion_tokens: 50 } });
    expect(engine.state().sleptBusy).toBe(0);
    await ask(origin, "/wake_up", {});
    const second = chat(origin, "sim:tokens=5000 hi");
    await until(() => engine.requests().at(-1)!.generated > 3);
    await ask(origin, "/sleep", {});
    expect((await second).text).toContain('"finish_reason":"abort"');
    expect(engine.state().sleptBusy).toBe(1);
  });

  it("of level 2 makes the engine answer nonsense until the weights are reloaded", async () => {
    const origin = await start();
    await ask(origin, "/sleep?level=2&mode=wait", {});
    await ask(origin, "/wake_up", {});
    expect(said(await chat(origin, "sim:tokens=3 hi"), "content")).toBe("!!!");
    await ask(origin, "/sleep?level=2&mode=wait", {});
    await ask(origin, "/wake_up?tags=weights", {});
    await ask(origin, "/collective_rpc", { method: "reload_weights" });
    expect((await ask(origin, "/is_sleeping")).text).toBe('{"is_sleeping":true}');
    await ask(origin, "/wake_up?tags=kv_cache", {});
    expect(said(await chat(origin, "sim:tokens=2 hi"), "content")).toBe("t0 t1 ");
  });
});

describe("the count of generated tokens", () => {
  it("stops when the caller leaves and notes the time", async () => {
    const origin = await start({ itlMs: 5 });
    const leaving = new AbortController();
    const asked = chat(
      origin,
      "sim:tokens=100000 hi",
      {},
      { signal: leaving.signal, headers: { "x-request-id": "r1" } },
    );
    await until(() => (engine.requests()[0]?.generated ?? 0) >= 5);
    leaving.abort();
    expect((await asked).broken).toBe(true);
    await until(() => engine.requests()[0]!.closedAtMs !== undefined);
    const [entry] = engine.requests();
    expect(entry).toMatchObject({ id: "r1", finished: false, aborted: true });
    const sum = (await ask(origin, "/metrics")).text.match(/generation_tokens_total{.*} (\d+)/)?.[1];
    expect(Number(sum)).toBe(entry!.generated);
    expect(engine.state()).toMatchObject({ running: 0, waiting: 0 });
  });

  it("never runs more requests than configured, and lets the others wait", async () => {
    const origin = await start({ maxRunning: 3 });
    const asked = Array.from({ length: 10 }, () => chat(origin, "sim:tokens=20,itl=5 hi"));
    await until(() => engine.state().waiting === 7);
    expect(engine.state().running).toBe(3);
    expect((await Promise.all(asked)).every((each) => each.terminated)).toBe(true);
  });

  it("equals what 300 simultaneous streams received", async () => {
    const origin = await start({ itlMs: 5, maxRunning: 200 });
    const heard = await Promise.all(
      Array.from({ length: 300 }, (_, index) => chat(origin, `sim:tokens=${10 + (index % 7)} hi`)),
    );
    expect(heard.every((each) => each.terminated)).toBe(true);
    const received = heard.reduce((sum, each) => sum + said(each, "content").split(" ").length - 1, 0);
    expect(engine.requests().reduce((sum, entry) => sum + entry.generated, 0)).toBe(received);
    expect(engine.requests().every((entry) => entry.finished)).toBe(true);
  });
});
