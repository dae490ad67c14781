/** Limiters below one contract, on virtual time: in memory, and of three routers that share a real server. */
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
  /** One for each router that shares the limits. */
  readonly limiters: readonly Limiter[];
  /** Multiples of 5 s. The store's own clock runs on: less than 5 s may pass between two calls. */
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

/** Makes what the store knows older, as if its clock had moved on. KEYS: times, then sorted sets; ARGV: milliseconds. */
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
  /** Events of the limiters, each with the number of its router. */
  readonly told: [router: number, what: keyof SharedLimiterEvents][];
}

/** `accounts`: those whose time passes. */
export async function onServer(
  server: ValkeyServer,
  accounts: readonly AccountId[],
  address = server.url,
): Promise<SharedRig> {
  await server.tell("FLUSHALL");
  const clock = new VirtualClock();
  // The pause before a store is asked again is over at once.
  const after: Clock["after"] = (ms, then) => (ms === 10 ? systemClock.after(0, then) : clock.after(ms, then));
  const hurried: Clock = { now: () => clock.now(), monotonicMs: () => clock.monotonicMs(), after };
  const admin = new Redis({ port: server.port });
  admin.on("error", () => {});
  const told: SharedRig["told"] = [];
  const opening = Promise.all([0, 1, 2].map((number) => open(number)));
  const isOpen = opening.then(() => true);
  // They look for the server until their connections are there.
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
        // A limiter that has been answered this has been answered all that it asked before: renewals have two turns.
        for (let turn = 0; turn < 2; turn++) await Promise.all(limiters.map((limiter) => limiter.use(accounts[0]!)));
      }
    },
    async [Symbol.asyncDispose]() {
      admin.disconnect();
      await Promise.all(limiters.map((limiter) => limiter[Symbol.asyncDispose]()));
    },
  };
}
