/** The lifecycle half of a dialect: how an engine of this kind is probed, put to sleep, woken and measured. */
import type { ModelId } from "@weiche/shared/ids.ts";
import type { DialectName, EngineEndpoint } from "./engine.ts";
import type { EngineCommandLine } from "./shared-context.ts";

/** No call retries. Each rejects with the signal's reason when its signal aborts. */
export interface DialectLifecycle {
  /**
   * Probes once. Resolves if the engine is healthy, lists the model and generates one token or embedding. `onLoaded` is
   * called when only the token is missing.
   */
  readiness(endpoint: EngineEndpoint, model: ModelId, signal: AbortSignal, onLoaded?: () => void): Promise<EngineFacts>;
  /**
   * Corrects the facts by the command line of a process that runs `program`. If undefined, the command line adds
   * nothing.
   */
  readonly onCommandLine?: {
    readonly program: string;
    read(facts: EngineFacts, command: EngineCommandLine): EngineFacts;
  };
  /**
   * Resolves when the engine reports that it sleeps and is healthy. Call it with no request in flight. Undefined if the
   * engine cannot sleep.
   */
  sleep?(endpoint: EngineEndpoint, level: 1 | 2, signal: AbortSignal): Promise<void>;
  /**
   * Returns whether the engine reports that it sleeps, including while it falls asleep or wakes. Defined together with
   * `sleep`.
   */
  isSleeping?(endpoint: EngineEndpoint, signal: AbortSignal): Promise<boolean>;
  /** Resolves when the engine reports that it is awake. At level 2 this reloads the weights. Does not probe. */
  wake?(endpoint: EngineEndpoint, level: 1 | 2, signal: AbortSignal): Promise<void>;
  /** Reads the version of the engine's program. Undefined if it names none. */
  version?(endpoint: EngineEndpoint, signal: AbortSignal): Promise<string | undefined>;
  /** Reads the engine's own metrics. An undefined method or field means unknown, not 0. */
  metrics?(endpoint: EngineEndpoint, signal: AbortSignal): Promise<EngineMetrics>;
}

export type DialectLifecycles = Readonly<Record<DialectName, DialectLifecycle>>;

/** Limits that a ready engine reports. A limit that it does not report is undefined. */
export type EngineFacts = Pick<EngineEndpoint, "windowTokens" | "cutsTexts" | "parallelMax" | "sharedSlots">;

export interface EngineMetrics {
  readonly running?: number;
  readonly waiting?: number;
  /** 0 to 1. */
  readonly kvCacheUse?: number;
  /** 0 to 1, over the engine's life. */
  readonly prefixCacheHitRate?: number;
  /** Sum of counters that change while the engine works. Only a change is a sign of life. */
  readonly work?: number;
}
