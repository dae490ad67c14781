/** The measurements of the machine, with the real library on this host, and with threads that die. */
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, release } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeEach, expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { createJobs } from "@weiche/shared/time/job.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { MachineTelemetry, readEveryMs } from "./machine-telemetry.ts";

let directory: string;
let lost: string[];
const events = { machineThreadLost: (thread: string, reason: string) => lost.push(`${thread}: ${reason}`) };

beforeEach(() => {
  directory = temporaryDirectory();
  lost = [];
});

function program(name: string, script: string): void {
  writeFileSync(join(directory, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(directory, name), 0o755);
}

test("the real library reports the same facts of this host as other sources", async () => {
  const kept = [{ path: directory, holds: "state" } as const];
  await using telemetry = new MachineTelemetry({ clock: systemClock, kept, path: process.env["PATH"], events });
  await telemetry.takeStock();
  expect(telemetry.machine).toMatchObject({ kernel: release(), processorThreads: cpus().length });
  await telemetry.read();
  expect(telemetry.reading!.loadAverage15).toBeGreaterThanOrEqual(0);
  expect(telemetry.reading!.fileSystems).toMatchObject([{ holds: ["state"] }]);
  expect(lost).toEqual([]);
}, 60_000);

test("the library's programs do not see our environment, and only the agent runs programs that open GPUs", async () => {
  process.env["WEICHE_TEST_SECRET"] = "hidden";
  program("lscpu", `env > ${directory}/seen; echo "Model name: Simulated 9000"`);
  program("nvidia-smi", `echo "$@" >> ${directory}/asked; echo "0, NVIDIA H100, 550.1, 00000000:3B:00.0, 81559"`);
  for (const name of ["clinfo", "xdpyinfo", "xrandr"]) program(name, `echo ${name} >> ${directory}/asked`);
  program("lspci", `echo "3b:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)"`);
  const path = `${directory}:${process.env["PATH"]}`;
  try {
    await using telemetry = new MachineTelemetry({ clock: systemClock, kept: [], path, events });
    await telemetry.takeStock();
    expect(telemetry.machine!.processor).toContain("Simulated 9000");
    expect(telemetry.machine!.gpus).toMatchObject([
      { index: 0, name: "NVIDIA H100", busAddress: "0000:3b:00.0", memoryTotalBytes: 81_559 * 2 ** 20 },
    ]);
  } finally {
    delete process.env["WEICHE_TEST_SECRET"];
  }
  expect(readFileSync(join(directory, "seen"), "utf8")).toContain("PATH=");
  expect(readFileSync(join(directory, "seen"), "utf8")).not.toContain("hidden");
  expect(readFileSync(join(directory, "asked"), "utf8").trim().split("\n")).toEqual([
    "--query-gpu=index,name,driver_version,pci.bus_id,memory.total --format=csv,noheader,nounits",
  ]);
}, 60_000);

test("after a thread has died, old values disappear, and the next reading arrives after the usual pause", async () => {
  const reading = join(directory, "reading.mjs");
  const dies = join(directory, "dies");
  writeFileSync(
    reading,
    `import { existsSync } from "node:fs"; import { parentPort } from "node:worker_threads";
     parentPort.on("message", () => existsSync(${JSON.stringify(dies)}) ? process.exit(1) : parentPort.postMessage({ loadAverage1: 1 }));`,
  );
  const clock = new VirtualClock();
  const programs = { inventory: pathToFileURL(reading), reading: pathToFileURL(reading) };
  await using telemetry = new MachineTelemetry({ clock, kept: [], path: undefined, events, programs });
  let ended = Promise.withResolvers<string>();
  const said = (what: string) => ended.resolve(what);
  const jobs = createJobs(clock, () => 0.5, { jobRan: () => said("ran"), jobFailed: () => said("failed") });
  const next = async () => {
    const outcome = await ended.promise;
    ended = Promise.withResolvers();
    await new Promise((resolve) => setImmediate(resolve)); // The job has reached its pause.
    return outcome;
  };
  await using _job = jobs("machine", readEveryMs, () => telemetry.read(), { atStart: true });
  expect([await next(), telemetry.reading]).toEqual(["ran", { loadAverage1: 1 }]);
  writeFileSync(dies, "");
  clock.advance(readEveryMs);
  expect([await next(), telemetry.reading]).toEqual(["failed", undefined]);
  expect(lost).toEqual(["reading: it ended with code 1"]);
  rmSync(dies);
  clock.advance(readEveryMs);
  expect([await next(), telemetry.reading]).toEqual(["ran", { loadAverage1: 1 }]);
  expect(existsSync(dies)).toBe(false);
});
