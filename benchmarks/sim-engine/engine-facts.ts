/** The settings of a simulated engine, with their defaults: times in milliseconds, sizes in tokens. */
export const engineDefaults = {
  ttftMs: 10,
  itlMs: 5,
  /** Length of an answer that nothing else bounds. */
  tokens: 20,
  reasoningTokens: 5,
  contextTokens: 32_768,
  /** Answers that are made at once; more requests wait, without bound. */
  maxRunning: 256,
  sleepMs: 10,
  wakeMs: 10,
  embeddingDimensions: 2_048,
  /** Stop strings that vLLM takes. */
  stopStringsMax: 4,
  /** Keeps the bodies of requests in the ledger, for tests of what reaches an engine. */
  keepBodies: false,
  /** vLLM: names that it serves beside its model, as it does LoRA adapters. */
  adapters: [] as readonly string[],
  /** llama-server: false is `--cache-ram 0`. */
  savesPrompts: true,
};

export type EngineFacts = Readonly<typeof engineDefaults> & { readonly model: string };
