import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { ask, chat, said } from "./sim-client.ts";

let directory: string;
let child: ChildProcess;
let exited: Promise<unknown[]>;

beforeEach(() => (directory = temporaryDirectory()));
afterEach(async () => {
  child.kill("SIGKILL");
  await exited;
});

async function start(...args: string[]): Promise<string> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as { port: number };
  await new Promise((resolve) => probe.close(resolve));
  const main = join(import.meta.dirname, "main.ts");
  const journal = join(directory, "journal");
  const fixed = ["--model", "m", "--itl-ms", "1", "--ttft-ms", "1", "--journal", journal];
  child = spawn(process.execPath, [main, "--port", String(port), ...fixed, ...args], { stdio: "ignore" });
  exited = once(child, "exit");
  return `http://127.0.0.1:${port}`;
}

async function ready(origin: string): Promise<void> {
  await expect
    .poll(
      () =>
        ask(origin, "/health").then(
          ({ status }) => status,
          () => 0,
        ),
      { timeout: 20_000, interval: 20 },
    )
    .toBe(200);
}

function journal(): Record<string, unknown>[] {
  const lines = readFileSync(join(directory, "journal"), "utf8").trim().split("\n");
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

it("runs as a process, and ends at SIGTERM with running answers aborted", async () => {
  const origin = await start();
  await ready(origin);
  expect(said(await chat(origin, "sim:tokens=2 hi"), "content")).toBe("t0 t1 ");
  const asked = chat(origin, "sim:tokens=100000 hi");
  await expect.poll(async () => (await ask(origin, "/sim/state")).text).toContain('"running":1');
  child.kill("SIGTERM");
  expect((await exited)[0]).toBe(0);
  expect((await asked).text).toContain('"finish_reason":"abort"');
});

it("dies at a configured token, and its journal contains the tokens generated before", async () => {
  const origin = await start();
  await ready(origin);
  const heard = await chat(origin, "sim:tokens=9,fault=crash:4 hi");
  expect(heard.broken).toBe(true);
  expect((await exited)[0]).toBe(1);
  expect(journal().map(({ event }) => event)).toEqual(["loading", "awake", "begun", "request", "crash"]);
  expect(journal()[3]).toMatchObject({ generated: 4, finished: false, model: "m" });
});

it("fails to start if configured", async () => {
  await start("--fault", "crash:start");
  expect((await exited)[0]).toBe(1);
});

it("in llama-server's dialect, a busy engine waits for a second SIGTERM", async () => {
  const origin = await start("--dialect", "llama-server");
  await ready(origin);
  const asked = chat(origin, "sim:tokens=100000 hi").catch(() => {});
  await expect.poll(async () => (await ask(origin, "/sim/state")).text).toContain('"running":1');
  child.kill("SIGTERM");
  expect((await ask(origin, "/health")).status).toBe(200);
  child.kill("SIGTERM");
  expect((await exited)[0]).toBe(1);
  await asked;
});
