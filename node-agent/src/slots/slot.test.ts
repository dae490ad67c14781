/** Every event in every state. Each case lists all changes and effects. */
import { describe, expect, test } from "vitest";
import { currentEpoch, wakeAtMs, type SlotEvent } from "./slot-state.ts";
import { a, b, c, endpoint, Play } from "../../test/slots/slot-play.ts";

type Step = (play: Play) => unknown;
const news =
  (kind: Parameters<Play["news"]>[0]): Step =>
  (play) =>
    play.news(kind);
const pass =
  (ms: number): Step =>
  (play) =>
    play.pass(ms);

const adopting: readonly Step[] = [(play) => play.event({ kind: "readopt" })];
const empty = [...adopting, news("adopted")];
const starting: readonly Step[] = [...empty, (play) => play.request(a)];
const active = [...starting, pass(1_000), news("started")];
const open: readonly Step[] = [...active, (play) => play.request(b)];
const closed = [...open, pass(10_000)];
const stopping: readonly Step[] = [...closed, (play) => play.release(1)];
/** How a slot reaches each state. The first requests have the tickets 1, 2 … */
const exits = (play: Play) => play.exits(a);
const histories = {
  ...{ adopting, empty, starting, active, stopping },
  "given up": [...starting, pass(60_000)],
  "draining, open": open,
  "draining, closed": closed,
  suspected: [...active, news("suspected")],
  failed: [...starting, news("startFailed")],
  lost: [...active, exits, news("stopped"), news("started"), exits, news("stopped")],
  stuck: [...stopping, news("stopFailed")],
};

const events: Record<string, (play: Play) => string[]> = {
  "request a": (play) => play.request(a),
  "request two answers of a": (play) => play.request(a, 2),
  "request b": (play) => play.request(b),
  "request c": (play) => play.request(c),
  "the waiter leaves": (play) => play.event({ kind: "left", ticket: play.slot.waiters[0]?.ticket ?? 99 }),
  "the running request ends": (play) => play.release(1),
  "a is suspected": (play) => play.news("suspected"),
  "a exits": (play) => play.exits(a),
  "b exits": (play) => play.exits(b),
  "it started": (play) => play.news("started"),
  "it did not start": (play) => play.news("startFailed"),
  "it stopped": (play) => play.news("stopped"),
  "it did not stop": (play) => play.news("stopFailed"),
  "a was found": (play) => play.found({ model: a, endpoint }),
  "a was found loading": (play) => play.found({ model: a, loadingForMs: 50_000 }),
  "nothing was found": (play) => play.news("adopted"),
  "looking failed": (play) => play.news("adoptFailed"),
  maintenance: (play) => play.maintenance(true),
  "prewarm a": (play) => play.event({ kind: "prewarm", model: a }),
  "prewarm c": (play) => play.event({ kind: "prewarm", model: c }),
  "a tick": (play) => play.event({ kind: "tick" }),
  "time is up": (play) => play.pass((wakeAtMs(play.slot, play.nowMs) ?? play.nowMs) - play.nowMs),
};

/** For each state and event: the next state if it changes, and the effects. */
const table: Record<keyof typeof histories, Record<string, string>> = {
  adopting: {
    before: "starting",
    "request a": "starting, a wait",
    "request two answers of a": "starting, a wait",
    "request b": "starting, b wait",
    "request c": "starting, c wait",
    "a exits": "failed",
    "b exits": "failed",
    "a was found": "active a",
    "a was found loading": "starting a; start a",
    "nothing was found": "empty",
    "looking failed": "failed",
    "time is up": "failed",
  },
  empty: {
    before: "empty",
    "request a": "starting a, a wait; start a",
    "request two answers of a": "starting a, a wait; start a",
    "request b": "starting b, b wait; start b",
    "request c": "starting c, c wait; start c",
    "prewarm a": "starting a; start a",
    "prewarm c": "starting c; start c",
  },
  starting: {
    before: "starting a, a wait",
    "request a": "starting a, aa wait",
    "request two answers of a": "starting a, aa wait",
    "request b": "starting a, ab wait",
    "request c": "starting a, ac wait",
    "the waiter leaves": "starting a",
    "a exits": "stopping a; giveUp; refuse 1 model_unavailable 2000",
    "it started": "active a, 1 run; admit 1",
    "it did not start": "failed a; refuse 1 model_unavailable 2000",
    maintenance: "starting a; refuse 1 maintenance 30000",
    "time is up": "stopping a; giveUp; refuse 1 model_unavailable 2000",
  },
  "given up": {
    before: "stopping a",
    "request a": "same; refuse 2 model_unavailable 2000",
    "request two answers of a": "same; refuse 2 model_unavailable 2000",
    "request b": "stopping a, b wait",
    "request c": "stopping a, c wait",
    "it started": "same; stop a for good",
    "it did not start": "failed a",
    "time is up": "same; stop a for good",
  },
  active: {
    before: "active a, 1 run",
    "request a": "active a, 2 run; admit 2",
    "request two answers of a": "active a, a wait, 1 run",
    "request b": "draining-open a->b, b wait, 1 run",
    "request c": "draining-open a->c, c wait, 1 run",
    "the running request ends": "active a",
    "a is suspected": "draining-closed a->a, 1 run",
    "a exits": "stopping a->a; engineLost; stop a for good",
  },
  "draining, open": {
    before: "draining-open a->b, b wait, 1 run",
    "request a": "draining-open a->b, b wait, 2 run; admit 3",
    "request two answers of a": "draining-open a->b, ba wait, 1 run",
    "request b": "draining-open a->b, bb wait, 1 run",
    "request c": "draining-open a->b, bc wait, 1 run",
    "the waiter leaves": "active a, 1 run",
    "the running request ends": "draining-open a->b, b wait",
    "a is suspected": "draining-closed a->b, b wait, 1 run",
    "a exits": "stopping a->b, b wait; engineLost; stop a for good",
    maintenance: "active a, 1 run; refuse 2 maintenance 30000",
    "time is up": "draining-closed a->b, b wait, 1 run",
  },
  "draining, closed": {
    before: "draining-closed a->b, b wait, 1 run",
    "request a": "draining-closed a->b, ba wait, 1 run",
    "request two answers of a": "draining-closed a->b, ba wait, 1 run",
    "request b": "draining-closed a->b, bb wait, 1 run",
    "request c": "draining-closed a->b, bc wait, 1 run",
    "the waiter leaves": "active a, 1 run",
    "the running request ends": "stopping a->b, b wait; stop a",
    "a exits": "stopping a->b, b wait; engineLost; stop a for good",
    maintenance: "active a, 1 run; refuse 2 maintenance 30000",
    "time is up": "active a, 1 run; refuse 2 overloaded 20000",
  },
  suspected: {
    before: "draining-closed a->a, 1 run",
    "request a": "draining-closed a->a, a wait, 1 run",
    "request two answers of a": "draining-closed a->a, a wait, 1 run",
    "request b": "draining-closed a->b, b wait, 1 run",
    "request c": "draining-closed a->c, c wait, 1 run",
    "the running request ends": "stopping a->a; stop a for good",
    "a exits": "stopping a->a; engineLost; stop a for good",
  },
  stopping: {
    before: "stopping a->b, b wait",
    "request a": "stopping a->b, ba wait",
    "request two answers of a": "stopping a->b, ba wait",
    "request b": "stopping a->b, bb wait",
    "request c": "stopping a->b, bc wait",
    "the waiter leaves": "stopping a",
    "it stopped": "starting b, b wait; start b",
    "it did not stop": "failed a; refuse 2 model_unavailable 2000",
    maintenance: "stopping a; refuse 2 maintenance 30000",
    "time is up": "failed a; refuse 2 model_unavailable 2000",
  },
  failed: {
    before: "failed a",
    "request a": "same; refuse 2 model_unavailable 2000",
    "request two answers of a": "same; refuse 2 model_unavailable 2000",
    "request b": "starting b, b wait; start b",
    "request c": "starting c, c wait; start c",
    "prewarm c": "starting c; start c",
    "time is up": "empty",
  },
  lost: {
    before: "failed a",
    "request a": "same; refuse 2 model_unavailable 4000",
    "request two answers of a": "same; refuse 2 model_unavailable 4000",
    "request b": "starting b, b wait; start b",
    "request c": "starting c, c wait; start c",
    "prewarm c": "starting c; start c",
    "time is up": "starting a; start a",
  },
  stuck: {
    before: "failed a",
    "request a": "same; refuse 3 model_unavailable 2000",
    "request two answers of a": "same; refuse 3 model_unavailable 2000",
    "request b": "same; refuse 3 model_unavailable 2000",
    "request c": "same; refuse 3 model_unavailable 2000",
    "time is up": "stopping a; stop a for good",
  },
};

function after(steps: readonly Step[]): Play {
  const play = new Play();
  for (const step of steps) step(play);
  return play;
}

describe.each(Object.keys(histories) as (keyof typeof histories)[])("a slot that is %s", (name) => {
  const { before, ...expected } = table[name];
  test.each(Object.keys(events))("has the effects that the table lists after %s", (event) => {
    const play = after(histories[name]);
    expect(play.state).toBe(before);
    const effects = events[event]!(play);
    const outcome = [play.state === before ? "same" : play.state, ...effects].join("; ");
    expect(outcome).toBe(expected[event] ?? "same");
  });

  test("an event of a past operation is ignored", () => {
    const play = after(histories[name]);
    const slot = play.slot;
    const epoch = (currentEpoch(slot.state) ?? slot.epoch + 1) - 1;
    const news: readonly SlotEvent[] = [
      { kind: "started", epoch, endpoint },
      { kind: "startFailed", epoch },
      { kind: "stopped", epoch },
      { kind: "stopFailed", epoch },
      { kind: "adopted", epoch, found: { model: b, endpoint } },
      { kind: "adopted", epoch },
      { kind: "adoptFailed", epoch },
      { kind: "suspected", epoch },
    ];
    for (const event of news) expect([event.kind, play.event(event)]).toEqual([event.kind, []]);
    expect(play.slot).toBe(slot);
  });
});
