/** How a simulated engine is set: its times, in milliseconds, its sizes, in tokens, and its bounds. */
export interface EngineFacts {
  readonly model: string;
  readonly ttftMs: number;
  readonly itlMs: number;
  readonly tokens: number;
  readonly reasoningTokens: number;
  readonly contextTokens: number;
  readonly maxRunning: number;
  readonly sleepMs: number;
  readonly wakeMs: number;
  readonly embeddingDimensions: number;
  readonly stopStringsMax: number;
  readonly keepBodies: boolean;
  readonly savesPrompts: boolean;
}
