/** The words for the protocol's enums, for both ends of the link. An enum's value without a word is of a later version. */
import {
  ModelCategory,
  ReasoningMode,
  RequestOutcome,
  SlotState,
  UsageSource,
} from "./gen/weiche/node/v1/node_control.ts";

export const sources = { engine: UsageSource.ENGINE, counted: UsageSource.COUNTED } as const;

export const outcomes = {
  finished: RequestOutcome.FINISHED,
  "client-ended": RequestOutcome.CLIENT_ENDED,
  "limit-ended": RequestOutcome.LIMIT_ENDED,
  broken: RequestOutcome.BROKEN,
  void: RequestOutcome.VOID,
} as const;

export const categories = {
  language: ModelCategory.LANGUAGE,
  coding: ModelCategory.CODING,
  embeddings: ModelCategory.EMBEDDINGS,
} as const;

export const reasoningModes = {
  unavailable: ReasoningMode.UNAVAILABLE,
  optional: ReasoningMode.OPTIONAL,
  "default-on": ReasoningMode.DEFAULT_ON,
} as const;

/** Returns the word for a received value. Undefined if only a later version knows it. */
export function wordOf<Word extends string>(words: Readonly<Record<Word, number>>, value: number): Word | undefined {
  return (Object.keys(words) as Word[]).find((word) => words[word] === value);
}

/** The states of a slot, for people and metrics. */
export const stateWords = {
  [SlotState.EMPTY]: "empty",
  [SlotState.STARTING]: "starting",
  [SlotState.ACTIVE]: "active",
  [SlotState.DRAINING_OPEN]: "draining-open",
  [SlotState.DRAINING_CLOSED]: "draining-closed",
  [SlotState.STOPPING]: "stopping",
  [SlotState.FAILED]: "failed",
} as const;
export type KnownSlotState = keyof typeof stateWords;

/**
 * Kinds of engine failures: an engine did not start or stop, ended by itself, is suspected to hang or fail, or the
 * search for engines of an earlier agent failed.
 */
export const engineFailureKinds = ["start", "stop", "exit", "suspected", "search"] as const;
export type EngineFailureKind = (typeof engineFailureKinds)[number];
