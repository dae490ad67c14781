import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { faultEngine, isAlive, kill, modelA, modelB, slot, until } from "./engines-on-host.ts";
import { never, quiet, statePerTest } from "./engines-per-test.ts";

const state = statePerTest();
const open = () => state.open({ engines: [faultEngine(modelA, ["--sessions"]), faultEngine(modelB)] });

type Started = Awaited<ReturnType<typeof started>>;

/** Starts an engine with two processes in other sessions. */
async function started() {
  const { launchers } = open();
  const handle = await launchers.process.start(faultEngine(modelA, ["--sessions"]), slot);
  const pids = async () =>
    (await launchers.process.lastLines(handle)).flatMap(
      (line) => /^session (\d+)$/.exec(line)?.slice(1).map(Number) ?? [],
    );
  await until("both run", async () => (await pids()).length === 2);
  return { launcher: launchers.process, handle, children: await pids() };
}

async function alive({ handle, children }: Started): Promise<boolean[]> {
  return Promise.all([handle.pid!, ...children].map(isAlive));
}

test("an engine's processes in other sessions are stopped with it", async () => {
  const engine = await started();
  expect(await engine.launcher.processes(engine.handle)).toEqual(
    expect.arrayContaining([engine.handle.pid, ...engine.children]),
  );
  await engine.launcher.stop(engine.handle);
  expect(await alive(engine)).toEqual([false, false, false]);
});

test("an engine's processes in other sessions are stopped even if the engine has ended before", async () => {
  const engine = await started();
  kill(engine.handle.pid!, "SIGKILL");
  await until("the leader is gone", async () => !(await isAlive(engine.handle.pid!)));
  expect(await alive(engine)).toEqual([false, true, true]);
  await engine.launcher.stop(engine.handle);
  expect(await alive(engine)).toEqual([false, false, false]);
});

test("an engine that dies under a slot leaves no processes in other sessions", async () => {
  const { engines, launchers, handles } = open();
  await engines.activate(modelA, never, quiet);
  const [handle] = await handles.read();
  const groups = async () => (await state.engineGroups()).length;
  await until("all three run", async () => (await groups()) === 3);
  await expect(launchers.process.processes(handle!)).resolves.toContain(handle!.pid);
  kill(handle!.pid!, "SIGKILL");
  await until("all are gone", async () => (await groups()) === 0);
});

test("a process that only has the pid of an engine, or the mark of another start, is not stopped", async () => {
  const engine = await started();
  const other = await open().launchers.process.start(faultEngine(modelB), slot);
  const { nonce: _, ...unmarked } = { ...engine.handle, startTicks: engine.handle.startTicks! - 1 };
  await engine.launcher.stop({ ...unmarked, nonce: "of an earlier start" });
  await engine.launcher.stop(unmarked);
  expect(await alive(engine)).toEqual([true, true, true]);
  // The engine is gone, and another process got its pid.
  const foreign = spawn("sleep", ["1000"], { detached: true, stdio: "ignore" });
  await once(foreign, "spawn");
  await engine.launcher.stop({ ...engine.handle, pid: foreign.pid!, startTicks: 1 });
  expect(await alive(engine)).toEqual([false, false, false]);
  expect(await isAlive(foreign.pid!)).toBe(true);
  expect(await isAlive(other.pid!)).toBe(true);
  foreign.kill("SIGKILL");
  await engine.launcher.stop(other);
});
