/**
 * Deliberate breakages of a slot's behaviour. Each wraps the real transition and breaks one thing, as if its code had
 * been forgotten. The simulation must find each.
 */
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import type { SlotLimits } from "@weiche/node-agent/src/config/config.ts";
import {
  awakeEngine,
  currentEpoch,
  placesOf,
  type Slot,
  type SlotEvent,
  type Waiter,
} from "@weiche/node-agent/src/slots/slot-state.ts";
import { transition } from "@weiche/node-agent/src/slots/slot.ts";

const nobody = asId<AccountId>("nobody");
const briefly = { failures: 1, ranMs: 0 };

type Behaviour = typeof transition;

/** Creates the broken behaviour of one agent, by the name of the rule that it forgets. */
export const breakages: Readonly<Record<string, () => Behaviour>> = {
  "the epoch check": () =>
    onEvents((event, { state }) =>
      "epoch" in event ? { ...event, epoch: currentEpoch(state) ?? event.epoch } : event,
    ),
  "to wait for running requests before an engine is put away": () =>
    onSlots((slot, event) => (isClosing(slot, event) ? { ...slot, taken: 0 } : slot)),
  "to cancel the time at which a drain closes": rememberedClosingTime,
  "that a drain closes": () => onSlots(limited({ drainOpenMsMax: Infinity })),
  "the minimum residency": () => onSlots(limited({ minResidencyMs: 0 })),
  "that a waiting client may leave": () => without("left"),
  "to end a drain with its last waiter": drainForNobody,
  "the backoff": () => onSlots((slot) => ({ ...slot, backoff: new Map() })),
  "that the backoff grows": () =>
    onSlots((slot) => {
      const first = [...slot.backoff].map(([model, backoff]) => [model, { ...backoff, failures: 0 }] as const);
      return { ...slot, backoff: new Map(first) };
    }),
  "the earlier turns of an engine that failed once": () =>
    onSlots((slot) => {
      const runs = [...slot.backoff].map(([model, backoff]) => [model, { ...backoff, ranMs: 0 }] as const);
      return { ...slot, backoff: new Map(runs) };
    }),
  "to hold requests for an engine under its first suspicion": () =>
    onSlots((slot, event, nowMs) => {
      const engine = event.kind === "request" ? awakeEngine(slot.state) : undefined;
      if (!engine || engine.suspectedAtMs === undefined) return slot;
      return { ...slot, backoff: new Map(slot.backoff).set(engine.model, { ...briefly, untilMs: nowMs + 2_000 }) };
    }),
  "to hold requests for an engine that exited for the first time": () => (slot, event, nowMs) => {
    const [after, effects] = transition(slot, event, nowMs);
    if (!effects.some(({ kind }) => kind === "engineLost") || event.kind !== "exited") return [after, effects];
    const backoff = new Map(after.backoff).set(event.model, { ...briefly, untilMs: nowMs + 2_000 });
    return [{ ...after, backoff }, effects];
  },
  "that an engine under suspicion admits no request": () =>
    onSlots((slot) => {
      const engine = awakeEngine(slot.state);
      if (!engine || engine.suspectedAtMs === undefined) return slot;
      const { suspectedAtMs: _, ...trusted } = engine;
      return { ...slot, state: { kind: "active", engine: trusted } };
    }),
  "that a closed drain admits no request": () =>
    onSlots((slot, event) =>
      event.kind === "request" && slot.state.kind === "draining"
        ? { ...slot, state: { ...slot.state, closesAtMs: Infinity } }
        : slot,
    ),
  "that a turn begins when its model is active": turnFromWaiter,
  "to hold a request for its model's next turn": () => onSlots(limited({ whileSwitching: "refuse" })),
  "that requests are held for a whole turn": heldWithoutTurn,
  "how much time a request has left": () =>
    onEvents((event) => (event.kind === "request" ? { ...event, leftMs: undefined } : event)),
  "to hold a request that has enough time": () =>
    onEvents((event) => (event.kind === "request" && event.leftMs ? { ...event, leftMs: 1 } : event)),
  "to wait for the stop before the next start": startWithoutWaiting,
  "which model's turn it is": () =>
    onSlots((slot) => ({ ...slot, waiters: slot.waiters.toSorted((a, b) => a.model.localeCompare(b.model)) })),
  "how many requests may wait": () => onSlots(limited({ waitersMax: Infinity })),
  "how long a request may wait": () => onSlots(limited({ waiterMsMax: Infinity })),
  "how many requests an engine may run": () =>
    onSlots((slot) => ({
      ...slot,
      maxConcurrent: new Map([...slot.maxConcurrent.keys()].map((model) => [model, 99])),
    })),
  "that a place is returned only once": () =>
    onSlots((slot, event) =>
      event.kind === "released"
        ? { ...slot, taken: Math.max(event.holding.places, slot.taken - event.holding.places) }
        : slot,
    ),
  "to hold a request that finds the engine full": () => (slot, event, nowMs) => {
    const engine = awakeEngine(slot.state);
    const isFull = engine && slot.taken >= placesOf(slot, engine);
    return isFull && event.kind === "request" && event.model === engine.model
      ? [slot, [{ kind: "refuse", ticket: event.ticket, refusal: "overloaded", retryAfterMs: 1_000 }]]
      : transition(slot, event, nowMs);
  },
  "that a later request does not overtake": () => reordered((a, b) => b.ticket - a.ticket),
  "that a smaller request does not overtake": () => reordered((a, b) => a.answers - b.answers),
  "that each answer takes a place": () =>
    onEvents((event) => (event.kind === "request" ? { ...event, answers: 1 } : event)),
  "that one request cannot get more answers than the engine has places": () =>
    onSlots((slot) => {
      const engine = awakeEngine(slot.state);
      if (!engine || !("engine" in slot.state)) return slot;
      const { parallelMax, ...endpoint } = engine.endpoint;
      const most = Math.min(slot.maxConcurrent.get(engine.model)!, parallelMax ?? Infinity);
      return {
        ...slot,
        maxConcurrent: new Map(slot.maxConcurrent).set(engine.model, most),
        state: { ...slot.state, engine: { ...engine, endpoint } },
      };
    }),
  "that each model has its own queue": () => (slot, event, nowMs) =>
    event.kind === "request" && slot.waiters.length >= slot.limits.waitersMax
      ? [slot, [{ kind: "refuse", ticket: event.ticket, refusal: "overloaded", retryAfterMs: 1_000 }]]
      : transition(slot, event, nowMs),
  "how long requests hold their places": () => onSlots((slot) => ({ ...slot, held: new Map() })),
  "the waiters when a place becomes free": () => (slot, event, nowMs) => {
    const [after, effects] = transition(slot, event, nowMs);
    return event.kind === "released" ? [{ ...slot, taken: after.taken }, []] : [after, effects];
  },
  "that engines exit": () => without("exited"),
  "to notify requests that their engine is lost": () => (slot, event, nowMs) => {
    const [after, effects] = transition(slot, event, nowMs);
    return [after, effects.filter((effect) => effect.kind !== "engineLost")];
  },
  "to restart an engine that exited": () =>
    onSlots((slot) => (slot.state.kind === "failed" ? { ...slot, state: { ...slot.state, restart: false } } : slot)),
  "to doubt an engine that hung": () => without("suspected"),
  "that a start may take too long": () => onSlots(limited({ startMsMax: Infinity })),
  "that a stop may take too long": () => onSlots(limited({ stopMsMax: Infinity })),
  "that a failed stop leaves an engine awake": () =>
    onEvents((event) => (event.kind === "stopFailed" ? { ...event, kind: "stopped" } : event)),
  "the engine that an earlier agent left": () =>
    onEvents((event) => (event.kind === "adopted" ? { kind: "adopted", epoch: event.epoch } : event)),
  "the engine that an earlier agent was starting": () =>
    onEvents((event) =>
      event.kind === "adopted" && event.found && "loadingForMs" in event.found
        ? { kind: "adopted", epoch: event.epoch }
        : event,
    ),
  "for how long an adopted engine has been loading": () =>
    onEvents((event) =>
      event.kind === "adopted" && event.found && "loadingForMs" in event.found
        ? { ...event, found: { ...event.found, loadingForMs: 0 } }
        : event,
    ),
  "that maintenance admits no request": () => without("maintenance"),
  "that a prewarmed model displaces no other model": () =>
    onEvents((event) =>
      event.kind === "prewarm"
        ? { kind: "request", ticket: -1, model: event.model, account: nobody, answers: 1 }
        : event,
    ),
  "that the wall clock may jump": jumpingClock,
};

function onEvents(change: (event: SlotEvent, slot: Slot) => SlotEvent): Behaviour {
  return (slot, event, nowMs) => transition(slot, change(event, slot), nowMs);
}

function onSlots(change: (slot: Slot, event: SlotEvent, nowMs: number) => Slot): Behaviour {
  return (slot, event, nowMs) => transition(change(slot, event, nowMs), event, nowMs);
}

function without(kind: SlotEvent["kind"]): Behaviour {
  return (slot, event, nowMs) => (event.kind === kind ? [slot, []] : transition(slot, event, nowMs));
}

function limited(limits: Partial<SlotLimits>): (slot: Slot) => Slot {
  return (slot) => ({ ...slot, limits: { ...slot.limits, ...limits } });
}

function isClosing({ state }: Slot, event: SlotEvent): boolean {
  return event.kind === "tick" && state.kind === "draining";
}

/** Sorts the waiters of each model. */
function reordered(compare: (a: Waiter, b: Waiter) => number): Behaviour {
  return onSlots((slot) => {
    const models = [...new Set(slot.waiters.map(({ model }) => model))];
    const queues = new Map(
      models.map((model) => [model, slot.waiters.filter((waiter) => waiter.model === model).toSorted(compare)]),
    );
    return { ...slot, waiters: slot.waiters.map(({ model }) => queues.get(model)!.shift()!) };
  });
}

function startWithoutWaiting(): Behaviour {
  return (slot, event, nowMs) => {
    const [after, effects] = transition(slot, event, nowMs);
    const stop = effects.find((effect) => effect.kind === "stop");
    if (!stop) return [after, effects];
    const [started, more] = transition(after, { kind: "stopped", epoch: stop.epoch }, nowMs);
    return [started, [...effects, ...more]];
  };
}

/** Counts a turn from the first waiter for another model, even while that waiter waits for the start. */
export function turnFromWaiter(): Behaviour {
  return (slot, event, nowMs) => {
    const [after, effects] = transition(slot, event, nowMs);
    const { state } = after;
    const other = after.waiters.find(({ model }) => model !== awakeEngine(state)?.model);
    if (state.kind !== "draining" || !other) return [after, effects];
    const closesAtMs = Math.min(state.closesAtMs, other.sinceMs + after.limits.drainOpenMsMax);
    if (closesAtMs === state.closesAtMs) return [after, effects];
    const earlier = { ...after, state: { ...state, closesAtMs } };
    if (nowMs < closesAtMs) return [earlier, effects];
    const [closed, more] = transition(earlier, { kind: "tick" }, nowMs);
    return [closed, [...effects, ...more]];
  };
}

/** Holds requests, and closes the next drain as if they had waited through it. */
function heldWithoutTurn(): Behaviour {
  const fromWaiter = turnFromWaiter();
  const held = limited({ whileSwitching: "hold" });
  return (slot, event, nowMs) => fromWaiter(held(slot), event, nowMs);
}

/** Keeps the closing time of a finished drain for the next drain. */
function rememberedClosingTime(): Behaviour {
  let rememberedMs = Infinity;
  return (slot, event, nowMs) => {
    const [after, effects] = transition(slot, event, nowMs);
    if (slot.state.kind === "draining" && after.state.kind === "active") rememberedMs = slot.state.closesAtMs;
    if (after.state.kind !== "draining" || rememberedMs <= nowMs) return [after, effects];
    const closesAtMs = Math.min(after.state.closesAtMs, rememberedMs);
    return [{ ...after, state: { ...after.state, closesAtMs } }, effects];
  };
}

/** Continues a drain whose last waiter has left. */
function drainForNobody(): Behaviour {
  return (slot, event, nowMs) => {
    const [after, effects] = transition(slot, event, nowMs);
    if (event.kind !== "left" || slot.state.kind !== "draining" || after.state.kind !== "active")
      return [after, effects];
    const waiter = { ticket: -1, model: slot.state.next, account: nobody, answers: 1, sinceMs: nowMs };
    return [{ ...after, state: slot.state, waiters: [...after.waiters, waiter] }, effects];
  };
}

/** Keeps deadlines in wall time, which sometimes jumps forward by an hour. */
function jumpingClock(): Behaviour {
  let events = 0;
  let aheadMs = 0;
  return (slot, event, nowMs) => {
    if (++events % 50 === 0) aheadMs += 3_600_000;
    return transition(slot, event, nowMs + aheadMs);
  };
}
