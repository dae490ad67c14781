/** Contracts of engines: what is configured, how one is reached, started, found again and spoken to. */
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";

export type DialectName = "vllm" | "llama-server" | "openai";

/**
 * Which requests may find one another's prompts in the engine's cache: those of one account, all, or none. Shared, the time
 * to the first token tells one account what another has sent.
 */
export type CachePrompts = "per-account" | "shared" | "off";

/** One engine of a slot as `agent.yaml` describes it. Nothing of it ever comes from a request. */
export interface EngineSpec {
  /** The catalogue's id and the engine's served model name. */
  readonly model: ModelId;
  readonly dialect: DialectName;
  readonly launcher: LauncherSpec;
  /** Absent: the engine is stopped and started. Level 1 keeps weights in host memory, level 2 keeps nothing. */
  readonly sleepLevel?: 1 | 2;
  /** Most answers that the engine is asked for at once; it never gets to queue. */
  readonly maxConcurrent: number;
  /** Absent: `per-account`. */
  readonly cachePrompts?: CachePrompts;
  /** GPU memory that must be free before it starts or wakes. Absent: not checked. */
  readonly memoryBytes?: number;
}

export type LauncherSpec =
  /** `{port}` and `{socket}` in the command are filled in by the agent. */
  | {
      readonly kind: "process";
      readonly command: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly directory: string;
    }
  | { readonly kind: "systemd"; readonly unit: string; readonly env: Readonly<Record<string, string>> }
  | { readonly kind: "external"; readonly url: string };

/** Where an engine listens: loopback or a Unix socket, nothing else. One object from one proof of readiness to the next. */
export interface EngineEndpoint {
  /** Such as `http://127.0.0.1:41234`; with a socket only its path and host count. */
  readonly origin: string;
  readonly socketPath?: string;
  /** How many tokens a request may have, as the engine said when it was proven. Absent: it was not, or did not say. */
  readonly windowTokens?: number;
  /** How many answers it makes at once, likewise; a request for more is beyond it. Absent: it did not say. */
  readonly parallelMax?: number;
  /** How many slots it has that share one context, of which `parallelMax` can be full together. Absent: none do. */
  readonly sharedSlots?: number;
}

/** What is stored on disk to find an engine again after the agent was restarted. */
export interface EngineHandle {
  readonly slot: SlotName;
  readonly model: ModelId;
  readonly launcher: LauncherSpec["kind"];
  readonly endpoint: EngineEndpoint;
  readonly pid?: number;
  /**
   * When the process started, in a number of the launcher's own (field 22 of `/proc/PID/stat`, systemd's monotonic
   * stamp): with the pid it names one process for as long as the host runs.
   */
  readonly startTicks?: number;
  /** SHA-256 of the command line and environment of the spec: a changed configuration is another engine. */
  readonly commandHash?: string;
  /** Of this start alone, and in the environment of all that it begets. Absent: started before there were nonces. */
  readonly nonce?: string;
  readonly unit?: string;
  /** Certain: neither falling asleep nor being woken. */
  readonly asleep: boolean;
  /** What it was told last, until it is seen to have done it. */
  readonly heading?: "asleep" | "awake";
  /** Since when it sleeps, in wall time: an agent that finds sleepers knows from it which has slept longest. */
  readonly asleepSinceMs?: number;
  /** When its process was started, in wall time, until it has been proven for the first time. */
  readonly loadingSinceMs?: number;
}

/** How an engine comes to life and ends. Few verbs; none of them waits for readiness. */
export interface Launcher {
  /** Resolves when the process exists. Throws with the reason if it cannot be started at all. */
  start(spec: EngineSpec, slot: SlotName): Promise<EngineHandle>;
  /** Whether the engine of the handle is alive and still the one that was started from this spec. Rejects if that cannot be told now. */
  recover(handle: EngineHandle, spec: EngineSpec): Promise<boolean>;
  /** Resolves when the engine is gone: a polite signal to its group, a second one, then a kill. Idempotent. */
  stop(handle: EngineHandle): Promise<void>;
  /** Calls back once when the engine exits, with the last lines it said; the returned function stops watching. */
  onExit(handle: EngineHandle, callback: (report: LauncherExitReport) => void): () => void;
  /** Resolves when nothing that it prints is kept as it is any more: it is about to get requests, which it may quote. */
  serve?(handle: EngineHandle): Promise<void>;
  /** The last lines that the engine said, at most 50. For the agent's log only, never for a client. */
  lastLines(handle: EngineHandle): Promise<readonly string[]>;
  /** Process ids of the living engine, to tell its GPU memory from that of others. Empty: not known, or gone. */
  processes(handle: EngineHandle): Promise<readonly number[]>;
  /** Process groups of the slot's engines that live, also of those whose handle never reached the disk. Absent: cannot be told. */
  running?(slot: SlotName): Promise<readonly EngineHandle[]>;
}

export type Launchers = Readonly<Record<LauncherSpec["kind"], Launcher>>;

/** Never what the engine said: one that has served may have printed prompts. */
export interface ExitReport {
  /** Such as `exit code 1` or `signal SIGKILL`. */
  readonly reason: string;
  /** Where what it said can be read: a file's path, or a `journalctl` command. */
  readonly output: string;
}

export interface LauncherExitReport extends ExitReport {
  /** The last lines of the engine's own output, at most 50. Only for the error of a start that failed. */
  readonly lastLines: readonly string[];
}

/** An engine did not become ready, or ended before it was. */
export class EngineStartError extends Error {
  /** For the agent's log only, never for a client. */
  readonly lastLines: readonly string[];

  constructor(reason: string, lastLines: readonly string[] = [], options?: ErrorOptions) {
    super(reason, options);
    this.lastLines = lastLines;
  }
}

/** The engine of an earlier agent that a slot goes on with. */
export type FoundEngine =
  /** Awake and proven. */
  | { readonly model: ModelId; readonly endpoint: EngineEndpoint }
  /** Started so long ago and not ready yet. `activate` waits for it instead of starting another one. */
  | { readonly model: ModelId; readonly loadingForMs: number };

/**
 * What a slot asks of its engines, by model. One instance per slot; it owns launchers, dialects, handles on disk and the
 * wait for GPU memory. Each call says which epoch it is for; the slot ignores news of older epochs.
 */
export interface SlotEngines {
  /**
   * Brings the model's engine to readiness: wake or start, then proof by a one-token probe. Rejects with an
   * `EngineStartError` (and leaves nothing half-started behind) if that fails or the signal aborts. For an engine that is
   * awake it is a probe; one that fails it is started anew. For one that `readopt` found loading it is the rest of its
   * start. `onPhase` tells what it is doing, maybe more than once.
   */
  activate(model: ModelId, signal: AbortSignal, onPhase: (phase: SwitchPhase) => void): Promise<EngineEndpoint>;
  /**
   * Puts the model's engine away: sleeps it if it can, else stops it; resolves when the memory is seen to be free. Called
   * only with nothing in flight. An engine that will not sleep is stopped instead; rejects only if even that fails.
   * `forGood`: it must not merely sleep (it hung, lied or exited). An engine that is gone already is put away. Called
   * again for the same model after it rejected, or while an earlier call hangs beyond `stopMsMax`: both then settle.
   */
  retire(model: ModelId, onPhase: (phase: SwitchPhase) => void, forGood?: boolean): Promise<void>;
  /**
   * Engines of an earlier agent that are alive: the awake one, if there is exactly one, proven by a probe unless it still
   * loads; others are put away. One that was being woken is woken, one that was falling asleep goes on to sleep. Called
   * before anything else, and again if it rejected or hung beyond `stopMsMax`.
   */
  readopt(): Promise<FoundEngine | undefined>;
  /** Called when an awake engine exits by itself, once, and never for one that `retire` was called for. */
  onExit(callback: (model: ModelId, report: ExitReport) => void): void;
  /** Stops every engine of the slot, asleep or awake. */
  stopAll(): Promise<void>;
  /** Engines that sleep; the one that has slept longest comes first. */
  sleepers(): readonly Sleeper[];
}

export interface Sleeper {
  readonly model: ModelId;
  /** GPU memory that it keeps. Absent: not measured. */
  readonly keptBytes?: number;
}

export type SwitchPhase = "drain" | "stop" | "memory" | "start" | "probe";
