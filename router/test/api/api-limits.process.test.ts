/** Tests the limits as a client sees them, on virtual time: retry times and defaults. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { loadRouterConfig } from "../../src/config/config.ts";
import type { LimitDecision, Limiter } from "../../src/limits/limiter.ts";
import { caller, chat, startApi } from "./api-harness.ts";
import { RawClient, rawPost, until } from "../edge/raw-client.ts";

const path = "/v1/chat/completions";

/** Loads a configuration file that names only the catalogue. */
function defaults() {
  const folder = temporaryDirectory();
  const file = join(folder, "router.yaml");
  writeFileSync(file, "catalogue: catalogue.yaml\n");
  return loadRouterConfig(file, {});
}

test.each([
  [0, "60"],
  [1, "60"],
  [999, "60"],
  [1_000, "59"],
  [10_001, "50"],
  [58_999, "2"],
  [59_000, "1"],
  [59_999, "1"],
])(
  "a request refused after %i ms of a minute has a retry-after of %s s and is then admitted [S19.2]",
  async (ms, retryAfter) => {
    const clock = new VirtualClock();
    await using api = await startApi({ clock });
    api.keys.set("sk-good", caller({ requestsPerMinute: 1 }));
    expect((await api.post(path, chat())).status).toBe(200);
    clock.advance(ms);
    const refused = await api.post(path, chat());
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, retryAfter]);
    clock.advance(Number(retryAfter) * 1_000);
    expect((await api.post(path, chat())).status).toBe(200);
  },
);

test("by default an address may send 20 requests at once and then ten a second, and no proxy is trusted [S19.5]", async () => {
  const clock = new VirtualClock();
  const { limits } = defaults();
  expect(limits.trustedProxies).toEqual([]);
  await using api = await startApi({ clock, limits });
  const served = async (times: number) => {
    const answers = await Promise.all(Array.from({ length: times }, () => api.get("/v1/models")));
    return answers.filter(({ status }) => status === 200).length;
  };
  expect(await served(30)).toBe(20);
  for (let second = 1; second <= 3; second++) {
    clock.advance(1_000);
    expect(await served(15)).toBe(10);
  }
});

test("by default a request may take 600 s at its node, and the router cuts it 5 s later [S19.9]", async () => {
  const clock = new VirtualClock();
  const { requestMsMax } = defaults();
  await using api = await startApi({ clock, requestMsMax });
  const ask = async (afterMs: number) => {
    const { promise: held, resolve } = Promise.withResolvers<void>();
    api.nodes.script = () => ({ held, chunks: ["{}"] });
    const answer = api.post(path, chat());
    await until(() => api.nodes.open === 1);
    clock.advance(afterMs);
    resolve();
    return await answer;
  };
  expect(await ask(604_999)).toMatchObject({ status: 200 });
  expect(await ask(605_000)).toMatchObject({
    status: 504,
    json: { error: { message: expect.stringMatching("600 s") } },
  });
  expect(api.nodes.sent.map(({ request }) => request.remainingMs)).toEqual([600_000, 600_000]);
});

/** Simulates a remote limiter. It decides when asked, and its answer arrives when the test releases it. */
class DistantLimiter implements Limiter {
  readonly #near: Limiter;
  readonly answers: (() => void)[] = [];

  constructor(near: Limiter) {
    this.#near = near;
  }

  async enter(...asked: Parameters<Limiter["enter"]>): Promise<LimitDecision> {
    const decision = await this.#near.enter(...asked);
    await new Promise<void>((resolve) => this.answers.push(resolve));
    return decision;
  }

  leave(...asked: Parameters<Limiter["leave"]>): void {
    this.#near.leave(...asked);
  }

  use(account: AccountId): ReturnType<Limiter["use"]> {
    return this.#near.use(account);
  }
}

test("a request waits for a slow limiter, and a client that leaves meanwhile keeps no place", async () => {
  let distant!: DistantLimiter;
  await using api = await startApi({ limiter: (memory) => (distant = new DistantLimiter(memory)) });
  const account = asId<AccountId>("one");
  api.keys.set("sk-good", caller({ accountId: account, parallelRequests: 1 }));
  const leaving = new RawClient(api.port).send(rawPost(path, JSON.stringify(chat())));
  await until(() => distant.answers.length === 1);
  leaving.socket.resetAndDestroy();
  await until(() => api.finished.length === 1);
  expect(api.limiter.use(account).parallel).toBe(1);
  distant.answers[0]!();
  await until(() => api.limiter.use(account).parallel === 0);

  const staying = api.post(path, chat());
  await until(() => distant.answers.length === 2);
  const second = api.post(path, chat());
  await until(() => distant.answers.length === 3);
  expect(api.nodes.sent).toEqual([]);
  distant.answers[2]!();
  expect((await second).json.error.code).toBe("rate_limit_exceeded");
  expect(api.nodes.sent).toEqual([]);
  distant.answers[1]!();
  expect((await staying).status).toBe(200);
  expect(api.left.length).toBe(2);
  expect(api.failures).toEqual([]);
});

test.each([
  ["0", "7"],
  ["1", "14"],
])(
  "a request that its client has repeated %s times has a retry-after of %s s behind a new answer [S19.2]",
  async (count, seconds) => {
    await using api = await startApi({ clock: new VirtualClock() });
    api.keys.set("sk-good", caller({ parallelRequests: 1 }));
    const held = Promise.withResolvers<void>();
    api.nodes.script = () => ({ held: held.promise, chunks: ["{}"] });
    const running = api.post(path, chat());
    await until(() => api.limiter.running === 1);
    const refused = await api.post(path, chat(), { "x-stainless-retry-count": count });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, seconds]);
    held.resolve();
    await running;
  },
);
