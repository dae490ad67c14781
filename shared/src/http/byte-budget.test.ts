import { expect, test } from "vitest";
import { createRandom } from "../random.ts";
import { settle, VirtualClock } from "../testing/virtual-clock.ts";
import { ByteBudget, waitMsMax, type Room } from "./byte-budget.ts";

const whole = 20;
const nobody = new AbortController().signal;
const of = (account: string, model?: string): Room["sharers"] => [
  { name: account, timesFree: 1 },
  ...(model === undefined ? [] : [{ name: model, timesFree: 3 }]),
];

function setUp(bytesMax = 120) {
  const clock = new VirtualClock();
  const budget = new ByteBudget(bytesMax, whole, clock);
  /** The fate of each body, in order. */
  const seen: string[] = [];
  const grow = (name: string, room: Room, bytes: number, signal: AbortSignal = nobody) =>
    void budget.grow(room, bytes, signal).then(
      () => seen.push(name),
      (error: Error) => seen.push(`${name}: ${error.message}`),
    );
  /** Requests room for a body of an account. */
  const body = (name: string, bytes: number, sharers = of(name), signal: AbortSignal = nobody) => {
    const room = budget.open(sharers);
    grow(name, room, bytes, signal);
    return room;
  };
  return { clock, budget, seen, grow, body };
}

test("one account gets at most half of the memory, so that others find room at once", async () => {
  const { seen, body } = setUp();
  for (let n = 1; n <= 4; n++) body(`hog ${n}`, 20, of("hog"));
  body("second", 20);
  body("third", 10);
  await settle();
  expect(seen).toEqual(["hog 1", "hog 2", "second", "third"]);
});

test("three greedy accounts leave room for a whole body of a fourth account [D4 S19.8]", async () => {
  const { seen, body } = setUp(320);
  for (const account of ["a", "b", "c"]) for (let n = 0; n < 16; n++) body(account, 20, of(account));
  body("victim", 20);
  body("small", 2);
  await settle();
  expect(seen.slice(-2)).toEqual(["victim", "small"]);
});

test("bodies that wait for one model leave room for bodies of another model [D4 S19.8]", async () => {
  const { seen, body } = setUp(320);
  for (let n = 0; n < 17; n++) body(`a${n}`, 20, of(`a${n}`, "full"));
  body("other", 20, of("other", "idle"));
  await settle();
  expect(seen).toHaveLength(11 + 1 + 1);
  expect(seen.at(-1)).toBe("other");
});

test("freed room goes to accounts that hold least, and a body that does not fit blocks no other", async () => {
  const { budget, seen, body } = setUp();
  const first = Array.from({ length: 5 }, (_, n) => body(`${n}`, 20));
  const apart = body("apart", 20);
  body("more of 0", 10, of("0"));
  body("large", 20);
  body("small", 5);
  await settle();
  expect(seen).toEqual(["0", "1", "2", "3", "4", "apart"]);
  budget.shrink(first[1]!, 13);
  await settle();
  expect(seen.slice(6)).toEqual(["small"]);
  budget.shrink(first[2]!, 0);
  await settle();
  expect(seen.slice(7)).toEqual(["large"]);
  budget.shrink(apart, 0);
  budget.shrink(first[0]!, 0);
  await settle();
  expect(seen.slice(8)).toEqual(["more of 0"]);
});

test("while another account waits, an account gets at most a quarter, and more once the others are gone [D4 S19.8]", async () => {
  const { budget, seen, body } = setUp(140);
  const lone = [1, 2, 3].map((n) => body(`lone ${n}`, 20, of("lone")));
  await settle();
  expect(seen, "half of 120").toEqual(["lone 1", "lone 2", "lone 3"]);
  const controller = new AbortController();
  const other = body("other 1", 20, of("other"));
  body("apart", 20);
  body("other 2", 20, of("other"), controller.signal);
  body("lone 4", 20, of("lone"));
  for (const room of lone.slice(1)) budget.shrink(room, 0);
  await settle();
  expect(seen.slice(3), "80 of 120 are free").toEqual(["other 1", "apart"]);
  controller.abort(new Error("gone"));
  await settle();
  expect(seen.slice(5)).toEqual(["other 2: gone", "lone 4"]);
  budget.shrink(other, 0);
});

/** Accounts that always ask for more bodies. Each body ends `runMs` after it got its room. */
function greedy(bytesMax: number, names: readonly string[], runMs: number) {
  const { clock, budget } = setUp(bytesMax);
  const held = new Map(names.map((name) => [name, 0]));
  const ask = (name: string) => {
    const room = budget.open(of(name));
    const again = () => {
      budget.shrink(room, 0);
      held.set(name, held.get(name)! - 20);
      ask(name);
    };
    const granted = () => {
      held.set(name, held.get(name)! + 20);
      clock.after(runMs, again);
    };
    budget.grow(room, 20, nobody).then(granted, () => ask(name));
  };
  for (const name of names) for (let n = 0; n < 20; n++) ask(name);
  /** Returns how long each of `count` bodies of a new account waits for its room. */
  const waitsOf = async (name: string, count: number) => {
    const sinceMs = clock.monotonicMs();
    const waits: number[] = [];
    for (let n = 0; n < count; n++)
      void budget.grow(budget.open(of(name)), 20, nobody).then(() => waits.push(clock.monotonicMs() - sinceMs));
    for (let n = 0; n < 150; n++) await clock.advanceAsync(100);
    return waits;
  };
  return { clock, held, waitsOf };
}

test.each<[accounts: string[], bodies: number, waitMs: number]>([
  [["a"], 3, 0],
  [["a", "b"], 3, 0],
  [["a", "b", "c"], 3, 10_000],
  [["a", "b", "c", "d", "e", "f"], 1, 0],
])(
  "beside accounts %j that always ask for more, %i bodies of a new account wait at most %i ms, and a body lasts 10 s [D4 S19.8]",
  async (names, bodies, waitMs) => {
    const { clock, held, waitsOf } = greedy(320, names, 10_000);
    await settle();
    await clock.advanceAsync(25_000);
    // The memory kept apart is one more body.
    expect(Math.max(...held.values())).toBeLessThanOrEqual((names.length === 1 ? 150 : 75) + 20);
    const waits = await waitsOf("new", bodies);
    expect(waits).toHaveLength(bodies);
    expect(waits[0]).toBe(0);
    expect(Math.max(...waits)).toBeLessThanOrEqual(waitMs);
  },
);

test("an aborted waiter takes no room", async () => {
  const { clock, budget, seen, body } = setUp(40);
  const controller = new AbortController();
  const first = body("a", 20);
  body("b", 20);
  body("c", 20, of("c"), controller.signal);
  controller.abort(new Error("gone"));
  await settle();
  budget.shrink(first, 0);
  body("d", 20);
  await settle();
  expect([seen, clock.pending]).toEqual([["a", "b", "c: gone", "d"], 0]);
});

test("a body that waits several times is refused after 30 s in total", async () => {
  const { clock, budget, seen, grow, body } = setUp(30);
  const blocks = body("blocks", 10);
  body("apart", 20);
  const waits = body("waits", 5);
  await clock.advanceAsync(waitMsMax - 1_000);
  budget.shrink(blocks, 5);
  await settle();
  grow("goes on", waits, 10);
  await clock.advanceAsync(999);
  expect(seen.slice(2)).toEqual(["waits"]);
  await clock.advanceAsync(1);
  expect(seen.slice(3)).toEqual(["goes on: Too many large requests at once."]);
  expect(clock.pending).toBe(0);
});

test("bodies that hold all memory and wait for more are completed one after the other [D4 S19.8]", async () => {
  const { budget, seen, grow, body } = setUp(60);
  const rooms = ["a", "b", "c", "d"].map((name) => body(name, 10));
  await settle();
  for (const [n, room] of rooms.entries()) grow(`whole ${n}`, room, 20);
  for (const room of rooms) {
    await settle();
    budget.shrink(room, 0);
  }
  expect(seen.slice(4)).toEqual(["whole 0", "whole 1", "whole 2", "whole 3"]);
});

const accounts = 6;

interface Body {
  readonly account: string;
  readonly room: Room;
  readonly size: number;
  state: "asking" | "coming" | "whole" | "over";
}

/** Accounts send bodies at random. Some arrive as a whole, others in parts. A whole body stays for a while. */
function simulate(seed: number) {
  const random = createRandom(seed);
  const bytesMax = whole * (2 + random.below(15));
  const clock = new VirtualClock();
  const budget = new ByteBudget(bytesMax, whole, clock);
  const bodies: Body[] = [];
  const end = (body: Body) => {
    body.state = "over";
    budget.shrink(body.room, 0);
  };
  const ask = (body: Body, bytes: number) => {
    body.state = "asking";
    budget.grow(body.room, bytes, nobody).then(
      () => (body.state = bytes === body.size ? "whole" : "coming"),
      () => end(body),
    );
  };
  const begin = (account: string, size = 1 + random.below(whole)) => {
    const model = `model ${random.below(3)}`;
    const body: Body = { account, size, state: "asking", room: budget.open(of(account, model)) };
    bodies.push(body);
    ask(body, random.chance(0.5) ? size : 1 + random.below(size));
    return body;
  };
  const open = () => bodies.filter(({ state }) => state !== "over");
  const held = () => open().reduce((sum, { room }) => sum + room.bytes, 0);
  const step = () => {
    const body = random.pick(bodies);
    if (random.chance(0.4)) begin(`account ${random.below(accounts)}`);
    else if (body?.state === "whole") end(body);
    else if (body?.state === "coming" && random.chance(0.7))
      ask(body, Math.min(body.size, body.room.bytes + 1 + random.below(whole)));
    else if (body?.state === "coming") budget.shrink(body.room, random.below(body.room.bytes + 1));
  };
  /** Lets partial bodies continue, then ends the oldest whole body. A whole body must always exist. */
  const endNext = async () => {
    await settle();
    for (const body of open()) if (body.state === "coming") ask(body, body.size);
    await settle();
    const next = open().find(({ state }) => state === "whole");
    expect({ seed, next: next?.state }).toEqual({ seed, next: "whole" });
    end(next!);
  };
  return { clock, random, bytesMax, begin, open, held, step, endNext };
}

test("the memory bound holds, no body waits for ever, and a new account is served first [D4 S19.8]", async () => {
  for (let seed = 1; seed <= 150; seed++) {
    const run = simulate(seed);
    for (let n = 0; n < 60; n++) {
      run.step();
      if (run.random.chance(0.3)) await run.clock.advanceAsync(run.random.below(2_000));
      else await settle();
      expect(run.held()).toBeLessThanOrEqual(run.bytesMax);
    }
    // Old accounts send two bodies for each body that ends. A new account waits only for bodies that held memory before
    // it came.
    const holding = run.open().filter(({ room }) => room.bytes > 0).length;
    const fresh = run.begin("fresh", whole);
    let ended = 0;
    for (; fresh.state === "asking" && ended <= holding + accounts; ended++) {
      await run.endNext();
      for (let more = 0; more < 2; more++) run.begin(`account ${run.random.below(accounts)}`);
      await settle();
    }
    expect({ seed, ended, holding, fresh: fresh.state }).not.toMatchObject({ fresh: "asking" });
    while (run.open().length > 0) await run.endNext();
    expect(run.clock.pending).toBe(0);
  }
}, 30_000);
