import { expect, test } from "vitest";
import { ByteThread, type OwnBytes } from "./byte-thread.ts";

interface Job {
  readonly bytes: OwnBytes;
  readonly what: string;
  readonly gate?: Int32Array;
  readonly odd?: unknown;
}

/** Echoes its job. A job can make it wait at a gate, fail or end. */
const program = new URL(
  `data:text/javascript,${encodeURIComponent(`
  import { parentPort } from "node:worker_threads";
  const asked = [];
  parentPort.on("message", ({ bytes, what, gate }) => {
    asked.push(what);
    if (gate) Atomics.wait(gate, 0, 0);
    if (what === "throw") throw new Error("thrown");
    if (what === "exit") process.exit(0);
    parentPort.postMessage({ bytes, asked }, [bytes.buffer]);
  });
`)}`,
);

function setUp() {
  const thread = new ByteThread<Job, { readonly bytes: OwnBytes; readonly asked: string[] }>(program);
  const gate = new Int32Array(new SharedArrayBuffer(4));
  return {
    gate,
    open() {
      Atomics.store(gate, 0, 1);
      Atomics.notify(gate, 0);
    },
    run: async (what: string, more: Partial<Job> & { readonly signal?: AbortSignal; readonly owner?: string } = {}) => {
      const { signal = new AbortController().signal, owner, ...rest } = more;
      const { bytes, asked } = await thread.run({ bytes: new Uint8Array([1, 2]), what, ...rest }, signal, owner);
      return `${asked.join()} ${bytes.join()}`;
    },
    [Symbol.asyncDispose]: () => thread[Symbol.asyncDispose](),
  };
}

const outcome = (run: Promise<string>) => run.catch((error: Error) => error.message);

test("one thread runs the jobs one after the other", async () => {
  await using thread = setUp();
  expect(await Promise.all(["a", "b", "c"].map((what) => thread.run(what)))).toEqual(["a 1,2", "a,b 1,2", "a,b,c 1,2"]);
});

test("owners take turns, and the jobs of one owner keep their order", async () => {
  await using thread = setUp();
  const { gate } = thread;
  const mine = ["a1", "a2", "a3"].map((what) => thread.run(what, { owner: "a", ...(what === "a1" && { gate }) }));
  const others = ["b1", "b2"].map((what) => thread.run(what, { owner: "b" }));
  others.push(thread.run("c1", { owner: "c" }));
  thread.open();
  const outcomes = await Promise.all([...mine, ...others]);
  expect(
    outcomes
      .map((asked) => asked.split(" ")[0]!)
      .toSorted((a, b) => a.length - b.length)
      .at(-1),
  ).toBe("a1,b1,c1,a2,b2,a3");
});

test.each([
  ["throw", "thrown"],
  ["exit", "the thread ended"],
])("a thread that ends (%s) fails its current job, and a new thread runs the others", async (what, message) => {
  await using thread = setUp();
  const runs = ["a", what, "b", "c"].map((each) => outcome(thread.run(each)));
  expect(await Promise.all(runs)).toEqual(["a 1,2", message, "b 1,2", "b,c 1,2"]);
});

test("a job that cannot be transferred fails alone, first in the queue or behind others", async () => {
  await using thread = setUp();
  const odd = () => "no thread takes a function";
  const runs = [thread.run("x", { odd }), thread.run("a"), thread.run("y", { odd }), thread.run("b")];
  expect(await Promise.all(runs.map(outcome))).toEqual([
    expect.stringContaining("could not be cloned"),
    "a 1,2",
    expect.stringContaining("could not be cloned"),
    "a,b 1,2",
  ]);
});

test("an aborted job is removed from the queue, and an abort does not interrupt a running job", async () => {
  await using thread = setUp();
  const { gate } = thread;
  const [begun, waiting] = [new AbortController(), new AbortController()];
  const atWork = outcome(thread.run("a", { gate, signal: begun.signal }));
  const left = outcome(thread.run("b", { signal: waiting.signal }));
  const last = outcome(thread.run("c"));
  begun.abort(new Error("gone"));
  waiting.abort(new Error("gone"));
  expect(await left).toBe("gone");
  thread.open();
  expect(await Promise.all([atWork, last])).toEqual(["a 1,2", "a,c 1,2"]);
  expect(await outcome(thread.run("d", { signal: begun.signal }))).toBe("gone");
});

test("closing fails all jobs and refuses new ones", async () => {
  const thread = setUp();
  const runs = ["a", "b"].map((what) => outcome(thread.run(what, { gate: thread.gate })));
  await thread[Symbol.asyncDispose]();
  expect(await Promise.all(runs)).toEqual(["closed", "closed"]);
  expect(await outcome(thread.run("c"))).toBe("closed");
});
