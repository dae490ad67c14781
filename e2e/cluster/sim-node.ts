/** Configures simulated vLLM engines for an agent of a cluster, and reads their state. */
import { join } from "node:path";
import type { EngineState } from "../sim-engine/sim-engine.ts";
import type { LedgerEntry } from "../sim-engine/ledger.ts";
import { engineHandles, type EngineHandle } from "./cluster.ts";

/**
 * Returns an engine for an agent's file, with sleep level 1. `options`: options of `sim-engine/main.ts`, without
 * dashes.
 */
export function simEngine(model: string, options: Readonly<Record<string, string | number>> = {}): object {
  const all = { "itl-ms": 5, "ttft-ms": 5, ...options };
  const flags = Object.entries(all).flatMap(([name, value]) => [`--${name}`, String(value)]);
  return {
    model,
    dialect: "vllm",
    maxConcurrent: 64,
    sleep: { level: 1 },
    directory: join(import.meta.dirname, "../.."),
    command: ["node", "e2e/sim-engine/main.ts", "--port", "{port}", "--model", model, ...flags],
  };
}

/** The same for an engine that serves several models at the same time. */
export function simEngineOf([first, ...adapters]: readonly [string, ...string[]], options = {}): object {
  const entry = simEngine(first, options) as { readonly model: string; readonly command: readonly string[] };
  const { model, command, ...engine } = entry;
  const flags = adapters.flatMap((adapter) => ["--adapter", adapter]);
  return { ...engine, models: [model, ...adapters], command: [...command, ...flags] };
}

export function catalogueOf(...models: readonly string[]): object[] {
  return models.map((id) => ({
    id,
    category: "language",
    status: "Beta",
    contextTokens: 32_768,
    factors: [{ validFrom: "2026-01-01T00:00:00+01:00", factor: 1 }],
  }));
}

/** Returns cluster options. Each node has one slot `a` with a simulated engine per model and the further keys of `slot`. */
export function simNodes(models: readonly string[], nodes: readonly string[] = ["node-1"], slot: object = {}) {
  const slots = [{ name: "a", ...slot, engines: models.map((model) => simEngine(model)) }];
  return { catalogue: catalogueOf(...models), agents: Object.fromEntries(nodes.map((node) => [node, { slots }])) };
}

/** The engine of one model. The agent's handle names the process, so this is another process after a restart. */
export class SimNodeEngine {
  readonly #dataDir: string;
  readonly #name: string;

  constructor(dataDir: string, slot: string, model: string) {
    this.#dataDir = dataDir;
    this.#name = `${slot}-${model}`;
  }

  /** Undefined if no engine runs. */
  get pid(): number | undefined {
    return engineHandles(this.#dataDir).get(this.#name)?.pid;
  }

  state(): Promise<EngineState> {
    return this.#ask<EngineState>("GET", "/sim/state");
  }

  requests(): Promise<LedgerEntry[]> {
    return this.#ask<LedgerEntry[]>("GET", "/sim/requests");
  }

  async setFaults(...faults: readonly string[]): Promise<void> {
    await this.#ask("PUT", "/sim/faults", faults);
  }

  get origin(): string {
    return this.#handle.endpoint.origin;
  }

  get heading(): "asleep" | "awake" | undefined {
    return this.#handle.heading;
  }

  get #handle(): EngineHandle {
    const handle = engineHandles(this.#dataDir).get(this.#name);
    if (!handle) throw new Error(`the agent has no engine ${this.#name}`);
    return handle;
  }

  async #ask<Answer>(method: string, path: string, body?: unknown): Promise<Answer> {
    const answer = await fetch(this.origin + path, { method, body: JSON.stringify(body) });
    const text = await answer.text();
    return (text === "" ? undefined : JSON.parse(text)) as Answer;
  }
}
