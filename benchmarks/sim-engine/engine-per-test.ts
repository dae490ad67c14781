/** For tests: an engine that is closed when the test is over. */
import { afterEach, expect } from "vitest";
import { startSimEngine, type SimEngine, type SimEngineOptions } from "./sim-engine.ts";

/** The engine that the running test started last. */
export let engine: SimEngine;
afterEach(() => engine[Symbol.asyncDispose]());

/** Starts a quick engine of model `m`; resolves to its origin. */
export async function start(options: Partial<SimEngineOptions> = {}): Promise<string> {
  engine = await startSimEngine({ model: "m", ttftMs: 1, itlMs: 1, ...options });
  return engine.origin;
}

/** Waits, in bounded time, until the engine is in a state. */
export async function until(condition: () => boolean): Promise<void> {
  await expect.poll(condition, { timeout: 5_000, interval: 5 }).toBe(true);
}

export const usage = { stream_options: { include_usage: true } };
