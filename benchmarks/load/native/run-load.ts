/** Starts the native engine and the native load client, and reads their output. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Natives } from "./compile.ts";

/** Tokens, requests and times cover the measured time, endings cover all requests. */
export interface LoadResult {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly requests: number;
  readonly tokens: number;
  readonly bytes: number;
  /** The status of the last refusal, or 0 without one. */
  readonly lastStatus: number;
  readonly endings: Readonly<Record<Ending, number>>;
  readonly firstByteUs: Histogram;
  readonly firstTokenUs: Histogram;
  readonly wholeUs: Histogram;
  /** The time between two tokens of one stream. */
  readonly gapUs: Histogram;
  /** The time from making a token to its arrival, by the machine's monotonic clock. */
  readonly delayUs: Histogram;
}

/**
 * `whole`: status 200, every token, the terminator. `refused`: another status. `cut`: the connection ended before the
 * answer's end. `undone`: [DONE] is missing. `miscounted`: the number of tokens is wrong. `told`: the stream ended with
 * an error event.
 */
export type Ending = "whole" | "refused" | "cut" | "undone" | "miscounted" | "told" | "unconnected" | "stalled";

interface Histogram {
  readonly count: number;
  readonly p50?: number;
  readonly p90?: number;
  readonly p99?: number;
  readonly max?: number;
  /** The lower bound and count of each bucket. */
  readonly buckets: readonly (readonly [number, number])[];
}

/** The options of `client.c`. Times are in seconds, `itl` and `wait` in microseconds. */
export interface Load {
  /** A port, or several separated by commas. Connections use them in turn. */
  readonly port: number | string;
  readonly connections: number;
  readonly seconds: number;
  readonly warmup?: number;
  readonly ramp?: number;
  readonly drain?: number;
  readonly stall?: number;
  readonly stream?: boolean;
  readonly tokens?: number;
  readonly itl?: number;
  readonly wait?: number;
  readonly each?: number;
  readonly body?: number;
  readonly path?: string;
  readonly model?: string;
  readonly keys?: string;
  readonly steer?: string;
  readonly headers?: string;
}

interface LoadMoments {
  /** Called when the measured time begins and ends, with the number of open answers. */
  measuring?(open: number): void;
  measured?(open: number): void;
}

export interface RunningEngine extends AsyncDisposable {
  readonly port: number;
  readonly pid: number;
}

/** Starts the engine on `core`, like all programs of the load. If undefined, it may run on any core. */
export async function startEngine(natives: Natives, core: number | undefined, model = "load"): Promise<RunningEngine> {
  const child = spawn(...onCore(core, natives.engine, ["0", model]), { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  const { port } = JSON.parse(line) as { port: number };
  return {
    port,
    pid: child.pid!,
    async [Symbol.asyncDispose]() {
      child.kill();
      await exited;
    },
  };
}

export async function runLoad(
  natives: Natives,
  core: number | undefined,
  load: Load,
  moments: LoadMoments = {},
  /** Ends the client at once, without a result. */
  leave?: AbortSignal,
): Promise<LoadResult> {
  const given = Object.entries(load).filter(([, value]) => value !== undefined);
  const args = given.flatMap(([name, value]) => [`--${name}`, String(Number(value) || value)]);
  const child = spawn(...onCore(core, natives.client, args), { stdio: ["ignore", "pipe", "pipe"] });
  leave?.addEventListener("abort", () => void child.kill(), { once: true });
  const complaints: string[] = [];
  child.stderr.on("data", (bytes: Buffer) => complaints.push(bytes.toString()));
  let result: LoadResult | undefined;
  createInterface(child.stdout).on("line", (line) => {
    const said = JSON.parse(line) as { event: "measuring" | "measured" | "result"; open: number };
    if (said.event === "result") result = said as unknown as LoadResult;
    else moments[said.event]?.(said.open);
  });
  await once(child, "close");
  if (!result) throw new Error(`the load client ended without a result: ${complaints.join("")}`);
  return result;
}

/** Returns the command that runs a program on a core. `taskset` becomes the program and keeps the process id. */
export function onCore(core: number | undefined, program: string, args: readonly string[]): [string, string[]] {
  return core === undefined ? [program, [...args]] : ["taskset", ["-c", String(core), program, ...args]];
}
