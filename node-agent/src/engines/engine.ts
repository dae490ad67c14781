/** Contracts of engines: configuration, address, launcher, and the operations of a slot on them. */
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import { Type, type Static } from "typebox";

export type DialectName = "vllm" | "llama-server" | "openai";

/**
 * Which requests share the engine's prefix cache. With `shared`, the time to the first token tells one account what
 * another has sent.
 */
export type CachePrompts = "per-account" | "shared" | "off";

/** One engine of a slot, as configured in `agent.yaml`. No field ever comes from a request. */
export interface EngineSpec {
  /** Model id of the catalogue, and the engine's served model name. It names the engine. */
  readonly model: ModelId;
  /** Several models that it serves at the same time, `model` among them. Absent: only that one. */
  readonly models?: readonly ModelId[];
  readonly dialect: DialectName;
  readonly launcher: LauncherSpec;
  /** 1 keeps the weights in host memory, 2 keeps nothing. Absent: the engine is stopped instead of put to sleep. */
  readonly sleepLevel?: 1 | 2;
  /** Maximum answers in parallel; the agent never sends more, so nothing queues inside the engine. */
  readonly maxConcurrent: number;
  /** Time without a sign of life after which it counts as hanging. Absent: see `EngineConnections`. */
  readonly silentMsMax?: number;
  /** Absent: `per-account`. */
  readonly cachePrompts?: CachePrompts;
  /** GPU memory that must be free before it starts or wakes. Absent: as much as it held last time, if known. */
  readonly memoryBytes?: number;
}

/** The models that an engine serves at the same time: ids of the catalogue, and its served model names. */
export function servedBy({ model, models = [model] }: Pick<EngineSpec, "model" | "models">): readonly ModelId[] {
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

/** Where an engine listens: loopback or a Unix socket, unless external. A new object at each proof of readiness. */
export interface EngineEndpoint {
  readonly origin: string;
  readonly socketPath?: string;
  /** Context window per request, as reported at the proof of readiness. Absent: not proven yet, or not reported. */
  readonly windowTokens?: number;
  /** Maximum answers in parallel, as reported; a request for more is refused. Absent: not reported. */
  readonly parallelMax?: number;
  /** Number of slots that share one context, of which `parallelMax` can be full at once. Absent: none share. */
  readonly sharedSlots?: number;
}

/** An engine that is awake and proven, in its slot. */
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
  /** It gets signals: 0, 1 and negative numbers would reach other processes than the engine. */
  pid: Type.Optional(Type.Integer({ minimum: 2 })),
  /**
   * Start time of the process in the launcher's own unit (field 22 of `/proc/PID/stat`, systemd's monotonic timestamp).
   * With the pid it identifies one process until the host reboots.
   */
  startTicks: Type.Optional(Type.Integer({ minimum: 0 })),
  /** SHA-256 of the command line and environment of the spec: an engine with another hash is not adopted. */
  commandHash: Type.Optional(Type.String()),
  /** Unique per start; inherited by every child process. Absent: started by a version without nonces. */
  nonce: Type.Optional(Type.String()),
  unit: Type.Optional(Type.String()),
  /** Asleep for certain: neither falling asleep nor waking. */
  asleep: Type.Boolean(),
  /** The state that it was last told to enter, until it is seen to have done so. */
  heading: Type.Optional(Type.Enum(["asleep", "awake"])),
  /** Wall time at which it fell asleep; orders sleepers after a restart of the agent. */
  asleepSinceMs: Type.Optional(Type.Number()),
  /** Wall time at which its process was started; removed once it is proven ready. */
  loadingSinceMs: Type.Optional(Type.Number()),
});

/** Stored on disk to find an engine again after a restart of the agent. */
export type EngineHandle = Readonly<Static<typeof handleSchema>>;

/** Starts, finds and stops engines. No method waits for readiness. */
export interface Launcher {
  /** Resolves when the process exists. Rejects with the reason if it cannot be started at all. */
  start(spec: EngineSpec, slot: SlotName): Promise<EngineHandle>;
  /** Whether the handle's engine is alive and was started from this spec. Rejects if that cannot be determined now. */
  recover(handle: EngineHandle, spec: EngineSpec): Promise<boolean>;
  /** Resolves when the engine is gone: SIGTERM to its group, a second one, then SIGKILL. Idempotent. */
  stop(handle: EngineHandle): Promise<void>;
  /** Calls back once when the engine exits, with its last output lines; the returned function stops watching. */
  onExit(handle: EngineHandle, callback: (report: LauncherExitReport) => void): () => void;
  /** Call before the first request, as engines may print requests. Resolves when raw output is no longer kept. */
  serve?(handle: EngineHandle): Promise<void>;
  /** Last output lines of the engine, at most 50. For the agent's log only, never for a client. */
  lastLines(handle: EngineHandle): Promise<readonly string[]>;
  /** Process ids of the running engine, to tell its GPU memory from that of others. Empty: unknown, or gone. */
  processes(handle: EngineHandle): Promise<readonly number[]>;
  /** Running process groups of the slot's engines, even without a stored handle. Absent: they cannot be found. */
  running?(slot: SlotName): Promise<readonly EngineHandle[]>;
}

export type Launchers = Readonly<Record<LauncherSpec["kind"], Launcher>>;

/** Contains no output of the engine, which may have printed prompts. */
export interface ExitReport {
  /** Such as `exit code 1` or `signal SIGKILL`. */
  readonly reason: string;
  /** Where its output can be read: a file's path, or a `journalctl` command. */
  readonly output: string;
}

export interface LauncherExitReport extends ExitReport {
  /** Last output lines of the engine, at most 50. Only for the error of a failed start. */
  readonly lastLines: readonly string[];
}

/** An engine did not become ready, or exited before it was. */
export class EngineStartError extends Error {
  /** For the agent's log only, never for a client. */
  readonly lastLines: readonly string[];

  constructor(reason: string, lastLines: readonly string[] = [], options?: ErrorOptions) {
    super(reason, options);
    this.lastLines = lastLines;
  }
}

/**
 * An engine that the slot adopts: awake and proven, or started `loadingForMs` ago and not ready, which `activate` waits
 * for.
 */
export type FoundEngine =
  | { readonly model: ModelId; readonly endpoint: EngineEndpoint }
  | { readonly model: ModelId; readonly loadingForMs: number };

/** Operations of a slot on its engines, by model. */
export interface SlotEngines {
  /**
   * Makes the model's engine ready: wakes or starts it, then probes it with one token. An awake engine is only probed,
   * and restarted if that fails; one that still loads is waited for. Rejects with an `EngineStartError` and leaves
   * nothing half-started. A phase may repeat.
   */
  activate(model: ModelId, signal: AbortSignal, onPhase: (phase: SwitchPhase) => void): Promise<EngineEndpoint>;
  /**
   * Puts the engine to sleep, or stops it if it cannot or `forGood`, then waits for its memory to be free. Call with no
   * request in flight. Rejects only if the stop fails. After a rejection, or a hang beyond `stopMsMax`, call again:
   * both calls then settle.
   */
  retire(model: ModelId, onPhase: (phase: SwitchPhase) => void, forGood?: boolean): Promise<void>;
  /**
   * Adopts the engines of an earlier agent and returns the awake one, probed unless it still loads; several awake ones
   * are stopped. Completes an interrupted wake or sleep. Call first, and again after a rejection or a hang beyond
   * `stopMsMax`.
   */
  readopt(): Promise<FoundEngine | undefined>;
  /** Calls back once when an awake engine exits by itself, but not after `retire` was called for it. */
  onExit(callback: (model: ModelId, report: ExitReport) => void): void;
  stopAll(): Promise<void>;
  /** Sleeping engines, longest asleep first. */
  sleepers(): readonly Sleeper[];
}

export interface Sleeper {
  readonly model: ModelId;
  /** GPU memory that it holds asleep. Absent: not measured. */
  readonly keptBytes?: number;
}

export type SwitchPhase = "drain" | "stop" | "memory" | "start" | "probe";

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
