/**
 * Measures single steps of the hot path in one process. `node benchmarks/load/micro.ts` prints a line of JSON with
 * microseconds of processor time per step. Uses the best of several runs, because disturbances only add time.
 */
import { judge, type CachedKey } from "@weiche/router/src/callers/cached-key.ts";
import { hashApiKey, makeApiKey } from "@weiche/router/src/callers/api-key.ts";
import { UnfinishedEvent } from "@weiche/router/src/api/withheld.ts";
import { MemoryLimiter } from "@weiche/router/src/limits/memory-limiter.ts";
import { place } from "@weiche/router/src/nodes/placement.ts";
import { SlotState, type NodeView } from "@weiche/router/src/nodes/node-view.ts";
import { systemClock as clock } from "@weiche/shared/time/clock.ts";
import { createSlot, currentEpoch, type SlotEvent } from "@weiche/node-agent/src/slots/slot-state.ts";
import { transition } from "@weiche/node-agent/src/slots/slot.ts";
import { asId, uuidv7, type AccountId, type ModelId, type NodeId, type SlotName } from "@weiche/shared/ids.ts";
import { SseParser } from "@weiche/shared/http/sse.ts";
import { createRandom } from "@weiche/shared/random.ts";

const runs = 7;
const keysCount = 10_000;
const random = createRandom(1);

/** Returns the processor time per step in microseconds. `work` does the given number of steps. */
function cost(steps: number, work: (steps: number) => void): number {
  work(steps); // so that V8 compiles the code
  const times = Array.from({ length: runs }, () => {
    const before = process.cpuUsage();
    work(steps);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / steps;
  });
  return Math.round(Math.min(...times) * 1_000) / 1_000;
}

const keys = Array.from({ length: keysCount }, () => makeApiKey());
const known = new Map(keys.map((key) => [hashApiKey(key), cachedKey()] as const));

function cachedKey(): CachedKey {
  const id = () => asId<never>(uuidv7(clock));
  const identity = { accountId: id(), userId: id(), keyId: id() };
  const caller = { ...identity, allowedModels: undefined, requestsPerMinute: 1e9, parallelRequests: 20 };
  const states = {
    revoked: false,
    userBlocked: false,
    accountBlocked: false,
    limitReachedUntilMs: 0,
    exhaustedUntilMs: 0,
  };
  return { ...identity, ...states, expiresMs: Infinity, terms: [{ startMs: 0, endMs: Infinity, caller }] };
}

/** Hashes a key, looks it up, checks it, and enters and leaves the limits. */
function authenticate(steps: number): void {
  const limiter = new MemoryLimiter(clock);
  for (let n = 0; n < steps; n++) {
    const caller = judge(known.get(hashApiKey(keys[n % keysCount]!))!, clock.now());
    if ("refused" in caller) throw new Error("refused");
    const request = asId<never>(String(n));
    const { requestsPerMinute: perMinute, parallelRequests: parallel } = caller;
    limiter.enter(caller.accountId, request, { perMinute, parallel });
    limiter.leave(caller.accountId, request);
  }
}

const chunk = Buffer.from(
  `data: {"id":"chatcmpl-0190","object":"chat.completion.chunk","created":1760000000,"model":"load","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}\n\n`,
);

/** Does the router's work on each chunk, which withholds unfinished events. */
function withhold(steps: number): void {
  const unfinished = new UnfinishedEvent();
  for (let n = 0; n < steps; n++) unfinished.push(chunk);
}

/** Does the agent's first work on each chunk, which finds and parses the event. */
function parse(steps: number): void {
  const parser = new SseParser();
  for (let n = 0; n < steps; n++)
    for (const event of parser.push(chunk)) if (event.kind === "data") JSON.parse(event.data);
}

const model = asId<ModelId>("load");

const slot = {
  ...{ name: asId<SlotName>("a"), models: [model], activeModel: model, maxConcurrent: 256 },
  ...{ state: SlotState.ACTIVE, waiting: 0, waiters: [], stateAgeMs: 0 },
};
const view: NodeView[] = Array.from({ length: 16 }, (_, n) => ({
  ...{ node: asId<NodeId>(`node-${n}`), reachable: true, reportedAtMs: 0, admitting: true, maintenance: false },
  slots: [{ ...slot, running: n % 7, runningOfRouter: n % 5, inFlight: n % 6, unread: 0 }],
}));

function placeAmong(steps: number): void {
  for (let n = 0; n < steps; n++) {
    const placed = place({ model, affinityKey: `account load ${n % 100}` }, view, 100, () => random.next());
    if ("refused" in placed) throw new Error("not placed");
  }
}

/** Admits a request of one of 64 accounts to an engine with 256 places beside running requests, and ends the oldest one. */
function admitBeside(running: number): (steps: number) => void {
  const limits = {
    minResidencyMs: 5_000,
    drainOpenMsMax: 10_000,
    waitersMax: 512,
    waiterMsMax: 300_000,
    whileSwitching: "hold",
  } as const;
  const times = { backoffMsMin: 2_000, backoffMsMax: 30_000, startMsMax: 60_000, stopMsMax: 20_000 };
  const engine = { model, dialect: "openai", launcher: { kind: "external", url: "http://127.0.0.1" } } as const;
  const memory = { roomMsMax: 0, makeRoomAfterMs: 0, returnMsMax: 0, returnShareMin: 0 };
  const engines = [{ ...engine, maxConcurrent: 256 }];
  let state = createSlot({ name: slot.name, gpus: [], memory, limits: { ...limits, ...times }, engines }, 0);
  let nowMs = 0;
  const send = (event: SlotEvent) => {
    const [after, effects] = transition(state, event, ++nowMs);
    state = after;
    return effects.flatMap((effect) => (effect.kind === "admit" ? effect.holding : []));
  };
  send({ kind: "readopt" });
  const epoch = currentEpoch(state.state)!;
  send({ kind: "adopted", epoch, found: { model, endpoint: { origin: "http://127.0.0.1" } } });
  const accounts = Array.from({ length: 64 }, () => asId<AccountId>(uuidv7(clock)));
  const ask = (ticket: number) => send({ kind: "request", ticket, model, account: accounts[ticket % 64]!, answers: 1 });
  const held = Array.from({ length: running }, (_, ticket) => ask(ticket)).flat();
  return (steps) => {
    for (let n = 0; n < steps; n++) {
      held.push(...ask(n));
      const holding = held.shift()!;
      held.push(...send({ kind: "released", epoch, holding, used: { promptTokens: 500, completionTokens: 100 } }));
    }
  };
}

function makeIds(steps: number): void {
  for (let n = 0; n < steps; n++) uuidv7(clock);
}

console.log(
  JSON.stringify({
    "key, look-up, limits": cost(200_000, authenticate),
    "request id": cost(200_000, makeIds),
    "chunk at the router: whole events only": cost(200_000, withhold),
    "chunk at the agent: event and JSON": cost(200_000, parse),
    "placement among 16 nodes": cost(20_000, placeAmong),
    "place of an engine, 64 others running": cost(20_000, admitBeside(64)),
    "place of a full engine, 16 others waiting": cost(5_000, admitBeside(272)),
  }),
);
