/** Engines that freeze, as by SIGSTOP: they accept connections, answer nothing, and ignore SIGTERM. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { SwitchPhase } from "../../src/engines/engine.ts";
import { faultEngine, isAlive, kill, modelA, modelB, startsIn, until, type Host } from "./engines-on-host.ts";
import { never, quiet, statePerTest } from "./engines-per-test.ts";

const state = statePerTest();
let host: Host;

const starts = () => join(state.directory, "starts");

function open(...flags: string[]): Host {
  const frozen = faultEngine(modelA, ["--starts", starts(), ...flags], { sleepLevel: 1 });
  host = state.open({ engines: [frozen, faultEngine(modelB)] });
  return host;
}

/**
 * Returns a listener of a switch's phases. When `phase` begins and only model A's engine was started, it freezes that
 * engine.
 */
function freezeIn(phase: SwitchPhase): { readonly onPhase: (now: SwitchPhase) => void; readonly done: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const onPhase = (now: SwitchPhase) => {
    if (now !== phase) return;
    const pids = readFileSync(starts(), "utf8").split("\n").filter(Boolean);
    if (pids.length > 1) return;
    kill(Number(pids[0]), "SIGSTOP");
    resolve();
  };
  return { onPhase, done: promise };
}

test.each([
  ["while it loads", ["--start-ms", "60000"], "start"],
  ["at its probe", [], "probe"],
] as const)(
  "the start of an engine that freezes %s ends with the signal and leaves no process",
  async (_, flags, phase) => {
    const { engines, handles } = open(...flags);
    const patience = new AbortController();
    const { onPhase, done } = freezeIn("probe");
    const activation = engines.activate(modelA, patience.signal, onPhase).catch((error: unknown) => error);
    await until("it runs", async () => (await startsIn(starts())).length === 1);
    const [pid] = await startsIn(starts());
    if (phase === "start") kill(pid!, "SIGSTOP");
    else await done;
    patience.abort(new Error("the time is over"));
    expect(await activation).toMatchObject({ message: expect.stringContaining("the time is over") });
    expect([await isAlive(pid!), await handles.read()]).toEqual([false, []]);
    await engines.activate(modelB, never, quiet);
  },
);

test.each([
  ["while it falls asleep", "sleep", "falling asleep took longer than 3 s"],
  ["in its sleep", "wake", "waking took longer than 3 s"],
  ["at the probe after it woke", "wake", "the engine's answer took longer than 2 s"],
])(
  "an engine that freezes %s is stopped, the other model is served, and the engine starts cold",
  async (when, what, why) => {
    const { engines } = open();
    await engines.activate(modelA, never, quiet);
    await engines.retire(modelA, when === "while it falls asleep" ? freezeIn("stop").onPhase : quiet);
    if (when === "in its sleep") kill((await startsIn(starts()))[0]!, "SIGSTOP");
    await engines.activate(modelB, never, quiet);
    await engines.activate(modelA, never, freezeIn("probe").onPhase);
    const surprises = host.told.filter(([event]) => event === "engineSurprised");
    expect(surprises).toEqual([["engineSurprised", "a", modelA, what, expect.stringContaining(why)]]);
    const [first, second] = await startsIn(starts());
    expect([await isAlive(first!), await isAlive(second!)]).toEqual([false, true]);
  },
);

test("an engine that froze while no agent ran is stopped by the next agent and starts cold", async () => {
  const before = open();
  await before.engines.activate(modelA, never, quiet);
  before.close();
  const [first] = await startsIn(starts());
  kill(first!, "SIGSTOP");
  const { engines, told } = open();
  expect(await engines.readopt()).toBeUndefined();
  expect(told).toContainEqual([
    "engineSurprised",
    "a",
    modelA,
    "probe",
    expect.stringContaining("took longer than 2 s"),
  ]);
  await engines.activate(modelA, never, quiet);
  const [, second] = await startsIn(starts());
  expect([await isAlive(first!), await isAlive(second!)]).toEqual([false, true]);
});
