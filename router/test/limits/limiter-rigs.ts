/** Opens the limiters of the contract on virtual time: one in memory, and three routers that share a real server. */
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "iovalkey";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { systemClock, type Clock } from "@weiche/shared/time/clock.ts";
import { uuidv7, type AccountId } from "@weiche/shared/ids.ts";
import { parseStore } from "../../src/config/store-address.ts";
import { MemoryLimiter } from "../../src/limits/memory-limiter.ts";
import { SharedLimiter, type SharedLimiterEvents } from "../../src/limits/shared-limiter.ts";
import { ValkeyStore } from "../../src/limits/valkey-store.ts";
import type { Limiter } from "../../src/limits/limiter.ts";
import type { ValkeyServer } from "./valkey-server.ts";

export interface LimiterRig extends AsyncDisposable {
  /** One limiter for each router that shares the limits. */
  readonly limiters: readonly Limiter[];
  /** Advances by a multiple of 5 s. The store's clock is real, so less than 5 s may pass between two calls. */
  advance(ms: number): Promise<void>;
}

export function inMemory(): LimiterRig {
  const clock = new VirtualClock();
  return {
    limiters: [new MemoryLimiter(clock)],
    async advance(ms) {
      clock.advance(ms);
    },
    async [Symbol.asyncDispose]() {},
  };
}

const stepMs = 5_000;

/** Makes all entries of the store older, as if time had passed. KEYS: times, then sorted sets. ARGV: milliseconds. */
const ageScript = `
local us = ARGV[1] * 1000
local function older(at) return string.format('%.0f', tonumber(at) - us) end
for k, key in ipairs(KEYS) do
  local left = redis.call('PTTL', key)
  local times = k == 1 and redis.call('LRANGE', key, 0, -1) or {}
  local members = k > 1 and redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') or {}
  redis.call('DEL', key)
  for _, at in ipairs(times) do redis.call('RPUSH', key, older(at)) end
  for i = 1, #members, 2 do redis.call('ZADD', key, older(members[i + 1]), members[i]) end
  if left > 0 then redis.call('PEXPIRE', key, math.max(0, left - ARGV[1])) end
end`;

export interface SharedRig extends LimiterRig {
  readonly limiters: readonly SharedLimiter[];
  /** The events of the limiters, each with the number of its router. */
  readonly told: [router: number, what: keyof SharedLimiterEvents][];
}

/** Opens three routers on a server. `advance` makes the entries of these accounts older. */
export async function onServer(
  server: ValkeyServer,
  accounts: readonly AccountId[],
  address = server.url,
): Promise<SharedRig> {
  await server.tell("FLUSHALL");
  const clock = new VirtualClock();
  // The pause before the store is asked again ends at once, because nothing advances the virtual clock meanwhile.
  const after: Clock["after"] = (ms, then) => (ms === 10 ? systemClock.after(0, then) : clock.after(ms, then));
  const hurried: Clock = { now: () => clock.now(), monotonicMs: () => clock.monotonicMs(), after };
  const admin = new Redis({ port: server.port });
  admin.on("error", () => {});
  const told: SharedRig["told"] = [];
  const opening = Promise.all([0, 1, 2].map((number) => open(number)));
  const isOpen = opening.then(() => true);
  // The limiters try the server until they are connected.
  while (!(await Promise.race([isOpen, sleep(5, false)]))) clock.advance(20);
  const limiters = await opening;
  for (const { alone } of limiters) if (alone) throw new Error(alone.reason);

  function open(router: number): Promise<SharedLimiter> {
    const tell = (what: keyof SharedLimiterEvents) => () => void told.push([router, what]);
    const config = { ...parseStore(address)!, tlsFiles: {}, whenDown: "full" } as const;
    return SharedLimiter.open({
      store: new ValkeyStore({ config, routerId: uuidv7(clock), clock, random: () => 0.5 }),
      own: new MemoryLimiter(clock),
      clock: hurried,
      events: {
        limitStoreLost: tell("limitStoreLost"),
        limitStoreBack: tell("limitStoreBack"),
        limitDecidedAlone: tell("limitDecidedAlone"),
        limitStoreAnswered() {},
      },
      whenDown: "full",
      routers: () => 3,
    });
  }

  return {
    limiters,
    told,
    async advance(ms) {
      for (let passed = 0; passed < ms; passed += stepMs) {
        for (const account of accounts) {
          const keys = ["times", "live", "begun", "told"].map((what) => `weiche:{${account}}:${what}`);
          await admin.eval(ageScript, keys.length, ...keys, stepMs);
        }
        clock.advance(stepMs);
        // When these answers arrive, all earlier commands are answered too. A renewal needs two turns.
        for (let turn = 0; turn < 2; turn++) await Promise.all(limiters.map((limiter) => limiter.use(accounts[0]!)));
      }
    },
    async [Symbol.asyncDispose]() {
      admin.disconnect();
      await Promise.all(limiters.map((limiter) => limiter[Symbol.asyncDispose]()));
    },
  };
}
