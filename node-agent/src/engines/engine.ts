/** Contracts of engines: configuration, address, launcher, and the operations of a slot on them. */
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import { Type, type Static } from "typebox";

export const dialectNames = ["vllm", "llama-server", "openai"] as const;
export type DialectName = (typeof dialectNames)[number];

/**
 * Which requests share the engine's prefix cache. With `shared`, the time to the first token reveals to one account the
 * prompts of another.
 */
export type CachePrompts = "per-account" | "shared" | "off";

/** The models that one engine serves. */
export interface ServedModels {
  /** Model id of the catalogue, and the engine's served model name. It names the engine. */
  readonly model: ModelId;
  /** Several models that it serves at the same time, including `model`. If undefined, it serves only `model`. */
  readonly models?: readonly ModelId[];
}

/** One engine of a slot, as configured in `agent.yaml`. No field comes from a request. */
export interface EngineSpec extends ServedModels {
  readonly dialect: DialectName;
  readonly launcher: LauncherSpec;
  /** Level 1 keeps the weights in host memory, level 2 keeps nothing. If undefined, the engine is stopped instead. */
  readonly sleepLevel?: 1 | 2;
  /** The most answers in parallel. The agent never sends more, so that no request queues inside the engine. */
  readonly maxConcurrent: number;
  /**
   * The time without a sign of life after which it counts as hanging. If undefined, the default of `EngineConnections`
   * applies.
   */
  readonly silentMsMax?: number;
  /** Absent: `per-account`. */
  readonly cachePrompts?: CachePrompts;
  /** GPU memory that must be free before it starts or wakes. If undefined, as much as it held last time, if known. */
  readonly memoryBytes?: number;
}

/** Returns the models that an engine serves at the same time: ids of the catalogue, and its served model names. */
export function servedBy({ model, models = [model] }: ServedModels): readonly ModelId[] {
  return models;
}

export type LauncherSpec =
  /** The agent replaces `{port}` and `{socket}` in the command. */
  | {
      readonly kind: "process";
      readonly command: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly directory: string;
    }
  | { readonly kind: "systemd"; readonly unit: string; readonly env: Readonly<Record<string, string>> }
  | { readonly kind: "external"; readonly url: string };

/** The address of an engine: loopback or a Unix socket, unless external. Each readiness probe makes a new object. */
export interface EngineEndpoint {
  readonly origin: string;
  readonly socketPath?: string;
  /**
   * The context window of a request, as reported at the readiness probe. Undefined before the probe, or if not
   * reported.
   */
  readonly windowTokens?: number;
  /** Whether the engine cuts texts to embed that are too long, instead of refusing them. Undefined if not reported. */
  readonly cutsTexts?: boolean;
  /** The most answers in parallel, as reported. A request for more is refused. Undefined if not reported. */
  readonly parallelMax?: number;
  /**
   * The number of slots that share one context, of which `parallelMax` can be full at once. Undefined if none share.
   */
  readonly sharedSlots?: number;
}

/** An engine that is awake and has answered its probe, in its slot. */
export interface AwakeEngine {
  readonly slot: SlotName;
  readonly spec: EngineSpec;
  readonly endpoint: EngineEndpoint;
}

export const handleSchema = Type.Object({
  slot: Type.Unsafe<SlotName>(Type.String()),
  model: Type.Unsafe<ModelId>(Type.String()),
  launcher: Type.Enum(["process", "systemd", "external"]),
  endpoint: Type.Object({ origin: Type.String(), socketPath: Type.Optional(Type.String()) }),
  /** It gets signals. The numbers 0, 1 and below would reach other processes than the engine. */
  pid: Type.Optional(Type.Integer({ minimum: 2 })),
  /**
   * Start time of the process in the launcher's own unit (field 22 of `/proc/PID/stat`, systemd's monotonic timestamp).
   * With the pid it identifies one process until the host reboots.
   */
  startTicks: Type.Optional(Type.Integer({ minimum: 0 })),
  /** SHA-256 of the command line and environment of the spec. An engine with another hash is not adopted. */
  commandHash: Type.Optional(Type.String()),
  /**
   * Unique per start, and inherited by every child process. Undefined if a version without nonces started the engine.
   */
  nonce: Type.Optional(Type.String()),
  unit: Type.Optional(Type.String()),
  /** Certainly asleep: neither falling asleep nor waking. */
  asleep: Type.Boolean(),
  /** The state that the agent last requested, until the engine has reached it. */
  heading: Type.Optional(Type.Enum(["asleep", "awake"])),
  /** Wall time at which it fell asleep. It orders sleepers after a restart of the agent. */
  asleepSinceMs: Type.Optional(Type.Number()),
  /** Wall time at which its process was started. Removed once the engine is ready. */
  loadingSinceMs: Type.Optional(Type.Number()),
});

/** Stored on disk to find an engine again after a restart of the agent. */
export type EngineHandle = Readonly<Static<typeof handleSchema>>;

/** Starts, finds and stops engines. No method waits for readiness. */
export interface Launcher {
  /** Resolves when the process exists. Rejects with the reason if it cannot be started at all. */
  start(spec: EngineSpec, slot: SlotName): Promise<EngineHandle>;
  /**
   * Returns whether the handle's engine is alive and was started from this spec. Rejects if that cannot be determined
   * now.
   */
  recover(handle: EngineHandle, spec: EngineSpec): Promise<boolean>;
  /** Resolves when the engine is gone: SIGTERM to its group, a second one, then SIGKILL. Idempotent. */
  stop(handle: EngineHandle): Promise<void>;
  /** Calls back once when the engine exits, with its last output lines. The returned function stops watching. */
  onExit(handle: EngineHandle, callback: (report: LauncherExitReport) => void): () => void;
  /**
   * Call this before the first request, because engines may print requests. Resolves when raw output is no longer kept.
   */
  serve?(handle: EngineHandle): Promise<void>;
  /** Returns the last output lines of the engine, at most 50. They are for the agent's log only, never for a client. */
  lastLines(handle: EngineHandle): Promise<readonly string[]>;
  /**
   * Returns the process ids of the running engine, to distinguish its GPU memory from others. Empty if unknown or gone.
   */
  processes(handle: EngineHandle): Promise<readonly number[]>;
  /**
   * Returns the running process groups of the slot's engines, even without a stored handle. Undefined if they cannot be
   * found.
   */
  running?(slot: SlotName): Promise<readonly EngineHandle[]>;
}

export type Launchers = Readonly<Record<LauncherSpec["kind"], Launcher>>;

/** Contains no output of the engine, which may have printed prompts. */
export interface ExitReport {
  /** For example `exit code 1` or `signal SIGKILL`. */
  readonly reason: string;
  /** Where its output can be read: a file's path, or a `journalctl` command. */
  readonly output: string;
}

export interface LauncherExitReport extends ExitReport {
  /** Last output lines of the engine, at most 50. Only for the error of a failed start. */
  readonly lastLines: readonly string[];
}

/** An engine did not become ready, or exited before it was ready. */
export class EngineStartError extends Error {
  /** For the agent's log only, never for a client. */
  readonly lastLines: readonly string[];

  constructor(reason: string, lastLines: readonly string[] = [], options?: ErrorOptions) {
    super(reason, options);
    this.lastLines = lastLines;
  }
}

/**
 * An engine that the slot adopts. It is awake and ready, or was started `loadingForMs` ago and is not ready. `activate`
 * waits for the latter.
 */
export type FoundEngine =
  | { readonly model: ModelId; readonly endpoint: EngineEndpoint }
  | { readonly model: ModelId; readonly loadingForMs: number };

/** Operations of a slot on its engines, by model. */
export interface SlotEngines {
  /**
   * Makes the model's engine ready: wakes or starts it, then probes it with one token. An awake engine is only probed,
   * and restarted if the probe fails. A loading engine is waited for. Rejects with an `EngineStartError` and leaves
   * nothing half-started. A phase may repeat.
   */
  activate(model: ModelId, signal: AbortSignal, onPhase: (phase: SwitchPhase) => void): Promise<EngineEndpoint>;
  /**
   * Puts the engine to sleep and waits for its memory to be free. Stops it instead if it cannot sleep or `forGood` is
   * set. Call it with no request in flight. Rejects only if the stop fails. After a rejection, or a hang that exceeds
   * `stopMsMax`, call it again: both calls then settle.
   */
  retire(model: ModelId, onPhase: (phase: SwitchPhase) => void, forGood?: boolean): Promise<void>;
  /**
   * Adopts the engines of an earlier agent and returns the awake one, probed unless it still loads. Several awake
   * engines are stopped. Completes an interrupted wake or sleep. Call it first, and again after a rejection or a hang
   * that exceeds `stopMsMax`.
   */
  readopt(): Promise<FoundEngine | undefined>;
  /** Calls back once when an awake engine exits by itself, but not after `retire` was called for it. */
  onExit(callback: (model: ModelId, report: ExitReport) => void): void;
  stopAll(): Promise<void>;
  /** Returns sleeping engines, longest asleep first. */
  sleepers(): readonly Sleeper[];
}

export interface Sleeper {
  readonly model: ModelId;
  /** GPU memory that it holds asleep. Undefined if not measured. */
  readonly keptBytes?: number;
}

export type SwitchPhase = "drain" | "stop" | "memory" | "start" | "probe";

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
