/** The lifecycle half of a dialect: how an engine of one kind is proven ready, put to sleep, woken and measured. */
import type { ModelId } from "@weiche/shared/ids.ts";
import type { DialectName, EngineEndpoint } from "./engine.ts";
import type { EngineCommandLine } from "./shared-context.ts";

/** Every call ends when its signal aborts, then rejecting with the signal's reason. None of them retries. */
export interface DialectLifecycle {
  /**
   * Asks once. Resolves when health is good, the engine names the model, and one token (or one embedding) was made;
   * throws with the reason while that is not so. `onLoaded` is called when only the token is missing.
   */
  readiness(endpoint: EngineEndpoint, model: ModelId, signal: AbortSignal, onLoaded?: () => void): Promise<EngineFacts>;
  /** What the command line of the program with this name says besides. Absent: nothing that counts. */
  readonly onCommandLine?: {
    readonly program: string;
    read(facts: EngineFacts, command: EngineCommandLine): EngineFacts;
  };
  /**
   * Resolves when the engine says that it sleeps and its health is good. Called only with nothing in flight. Absent: the
   * dialect cannot sleep.
   */
  sleep?(endpoint: EngineEndpoint, level: 1 | 2, signal: AbortSignal): Promise<void>;
  /** Whether the engine says that it sleeps: also while it falls asleep or is being woken. With `sleep`. */
  isSleeping?(endpoint: EngineEndpoint, signal: AbortSignal): Promise<boolean>;
  /** Resolves when the engine says that it is awake; level 2 includes bringing the weights back. No probe. */
  wake?(endpoint: EngineEndpoint, level: 1 | 2, signal: AbortSignal): Promise<void>;
  /** What the engine measures of itself. Absent, or a field of it absent: not known, never 0. */
  metrics?(endpoint: EngineEndpoint, signal: AbortSignal): Promise<EngineMetrics>;
}

export type DialectLifecycles = Readonly<Record<DialectName, DialectLifecycle>>;

/** What a ready engine says of itself. What it does not say is absent. */
export type EngineFacts = Pick<EngineEndpoint, "windowTokens" | "parallelMax" | "sharedSlots">;

export interface EngineMetrics {
  readonly running?: number;
  readonly waiting?: number;
  /** 0 to 1. */
  readonly kvCacheUse?: number;
  /** 0 to 1, over the engine's life. */
  readonly prefixCacheHitRate?: number;
  /** The sum of all that moves as the engine works. As a number it means nothing; that it moves is a sign of life. */
  readonly work?: number;
}
