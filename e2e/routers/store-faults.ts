/** Defines faults of the limit store that three routers share, and checks what the routers guarantee during each. */
import { expect } from "vitest";
import type { ValkeyServer } from "@weiche/router/test/limits/valkey-server.ts";
import { until } from "../cluster/cluster.ts";
import { leaveAll, running, type HeldRequest, type SharedLimits } from "./shared-limits.ts";

interface StoreFault {
  readonly begin: (store: ValkeyServer) => unknown;
  readonly end: (store: ValkeyServer) => unknown;
  /** Undefined if the routers do not notice the fault. */
  readonly isDown?: true;
}

export const faults = {
  "is killed and starts again": { begin: (store) => store.kill(), end: (store) => store.startAgain(), isDown: true },
  "forgets everything": { begin: (store) => store.tell("FLUSHALL"), end() {} },
  "is stopped": { begin: (store) => store.signal("SIGSTOP"), end: (store) => store.signal("SIGCONT"), isDown: true },
  "becomes a replica": {
    begin: (store) => store.tell("REPLICAOF", "127.0.0.1", "1"),
    end: (store) => store.tell("REPLICAOF", "NO", "ONE"),
    isDown: true,
  },
} satisfies Record<string, StoreFault>;

const parallel = 10;
const routers = [0, 1, 2] as const;

/**
 * Begins the fault while nine requests run, three at each router. While the store is down, each router allows the whole
 * limit and no more. Once the store is back, the limit applies to all routers together within 5 s. Resolves with the
 * requests, of the nine, that have ended.
 */
export async function meetFault(
  limits: SharedLimits,
  { begin, end, isDown }: StoreFault,
): Promise<readonly HeldRequest[]> {
  const { store } = limits;
  const apiKey = await limits.account("Parallel");
  const kept = await limits.shared(() => limits.ask(apiKey, 9));
  expect(running(kept).length).toBe(9);
  await begin(store);
  const asked = await limits.ask(apiKey, 90);
  const extra = running(asked);
  const atRouters = routers.map((router) => 3 + extra.filter((each) => each.router === router).length);
  if (isDown) expect(atRouters).toEqual([parallel, parallel, parallel]);
  for (const running of atRouters) expect(running).toBeLessThanOrEqual(parallel);
  await leaveAll(extra);
  await end(store);
  await until("the limit to apply to all routers", () => isExact(limits, apiKey), 5_000);
  const over = kept.filter((each) => each.isOver);
  await leaveAll(kept);
  return over;
}

/** Returns whether exactly one of many further requests is admitted, twice. */
async function isExact(limits: SharedLimits, apiKey: string): Promise<boolean> {
  for (let times = 0; times < 2; times++) {
    const held: readonly HeldRequest[] = await limits.ask(apiKey, 9);
    await leaveAll(held);
    if (running(held).length !== 1) return false;
  }
  return true;
}
