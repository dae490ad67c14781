/** The settings of a simulated engine with their defaults. Times are in milliseconds, sizes in tokens. */
export const engineDefaults = {
  ttftMs: 10,
  /** Added to `ttftMs` for each thousand tokens of the prompt. */
  ttftPerThousandMs: 0,
  itlMs: 5,
  /** Added to `itlMs` for each running answer, and for each thousand tokens in the contexts of all running answers. */
  itlPerRunningMs: 0,
  itlPerThousandMs: 0,
  /** The length of an answer without another bound. */
  tokens: 20,
  reasoningTokens: 5,
  contextTokens: 32_768,
  /** The most simultaneous answers. Any number of further requests wait. */
  maxRunning: 256,
  sleepMs: 10,
  wakeMs: 10,
  embeddingDimensions: 2_048,
  /** The most stop strings that vLLM accepts. */
  stopStringsMax: 4,
  /** Keeps the bodies of requests in the ledger, for tests of what reaches an engine. */
  keepBodies: false,
  /** Further names that it serves: LoRA adapters of vLLM, aliases of llama-server. */
  adapters: [] as readonly string[],
  /** For llama-server, false corresponds to `--cache-ram 0`. */
  savesPrompts: true,
};

export type EngineFacts = Readonly<typeof engineDefaults> & { readonly model: string };
