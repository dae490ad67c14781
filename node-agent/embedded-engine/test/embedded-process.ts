/** Runs the real embedded engine with the tiny model, for tests. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { sleep, systemClock } from "@weiche/shared/time/clock.ts";

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));
export const tinyModel = fileURLToPath(new URL("../../models/weiche-tiny.gguf", import.meta.url));

export interface EngineProcess extends AsyncDisposable {
  readonly process: ChildProcess;
  readonly url: string;
  readonly errors: readonly string[];
}

/** Runs the engine until it exits. Returns its exit code and its lines on stderr. */
export async function runEngine(args: readonly string[]): Promise<{ code: number | null; errors: string[] }> {
  const { child, errors } = spawnEngine(args);
  const [code] = (await once(child, "close")) as [number | null];
  return { code, errors };
}

/** Resolves when the engine listens, or with `ready` when it has loaded its model. */
export async function startEngine(args: readonly string[] = [], ready = true): Promise<EngineProcess> {
  const { child, errors } = spawnEngine(["--model", tinyModel, "--alias", "tiny", "--port", "0", ...args]);
  let url = "";
  for await (const line of createInterface({ input: child.stdout! })) {
    if (line.includes("listening on")) url = line.slice(line.lastIndexOf(" ") + 1);
    if (line.includes(ready ? "is ready" : "listening on")) break;
  }
  if (url === "") throw new Error(`the engine did not start: ${errors.join("\n")}`);
  child.stdout!.resume();
  return { process: child, url, errors, [Symbol.asyncDispose]: () => end(child) };
}

function spawnEngine(args: readonly string[]) {
  const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  const errors: string[] = [];
  createInterface({ input: child.stderr }).on("line", (line) => errors.push(line));
  return { child, errors };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

export function post(url: string, path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  const headers = { "content-type": "application/json" };
  return fetch(url + path, { method: "POST", headers, body: JSON.stringify(body), ...(signal && { signal }) });
}

/** Returns the engine's metrics by name, without the prefix. */
export async function metricsOf(url: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const lines = text.matchAll(/^vllm:(\w+)\{[^}]*\} (.+)$/gm);
  return Object.fromEntries([...lines].map(([, name, value]) => [name!, Number(value)]));
}

/** Waits for a condition of the metrics, and returns how many milliseconds that took. */
export async function until(url: string, boundMs: number, wanted: (metrics: Record<string, number>) => boolean) {
  const start = systemClock.monotonicMs();
  for (;;) {
    const metrics = await metricsOf(url);
    const elapsedMs = systemClock.monotonicMs() - start;
    if (wanted(metrics)) return { metrics, elapsedMs };
    if (elapsedMs > boundMs) throw new Error(`not so after ${boundMs} ms: ${JSON.stringify(metrics)}`);
    await sleep(systemClock, 5);
  }
}

/** Returns the data of an event stream, with `[DONE]` as the last entry if it came. */
export async function eventsOf(response: Response): Promise<unknown[]> {
  const lines = (await response.text()).split("\n\n").filter((line) => line !== "");
  return lines.map((line) => (line === "data: [DONE]" ? "[DONE]" : JSON.parse(line.slice("data: ".length))));
}
