/** Starts engines that close at the end of a test. */
import { expect, onTestFinished } from "vitest";
import { startSimEngine, type SimEngine, type SimEngineOptions } from "./sim-engine.ts";

/** The engine that the running test started last. */
export let engine: SimEngine;

/** Starts a fast engine of model `m` and resolves with its origin. */
export async function start(options: Partial<SimEngineOptions> = {}): Promise<string> {
  const started = await startSimEngine({ model: "m", ttftMs: 1, itlMs: 1, ...options });
  onTestFinished(() => started[Symbol.asyncDispose]());
  engine = started;
  return engine.origin;
}

/** Waits until a condition is true, for a limited time. */
export async function until(condition: () => boolean): Promise<void> {
  await expect.poll(condition, { timeout: 5_000, interval: 5 }).toBe(true);
}

export const usage = { stream_options: { include_usage: true } };
