/**
 * llama-server's slots can share one context (`-kvu`, and whenever `-np` is missing): each of them may fill all of it,
 * and once they want more together than there is, every answer breaks off. What the engine says of itself is then how
 * many slots it has and what each may use, but not that they share it: that is seen on its command line only.
 */
import type { EngineEndpoint } from "./engine.ts";

/** What the engine is started with. */
export interface EngineCommandLine {
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface SharedContext {
  /** All slots together. Absent: as much as one slot may use. */
  readonly tokens?: number;
  /** Why they share it. */
  readonly because: "no -np" | "-kvu";
}

/** Undefined: each slot has room of its own, or needs none for longer than a batch, as texts to embed do. */
export function sharedContext(command: EngineCommandLine): SharedContext | undefined {
  if (command.words.some((word) => embedding.has(normal(word)))) return undefined;
  const slots = option(command, ["-np", "--parallel"], "LLAMA_ARG_N_PARALLEL") ?? -1;
  if (slots === 1 || (slots > 1 && !isUnified(command))) return undefined;
  const context = option(command, ["-c", "--ctx-size"], "LLAMA_ARG_CTX_SIZE");
  const perSlot = option(command, ["--kv-unified-per-slot"], "LLAMA_ARG_KV_UNIFIED_PER_SLOT") ?? 0;
  // The engine then makes the context as large as its slots need.
  if (perSlot > 0 && context === undefined) return undefined;
  return {
    because: slots < 0 ? "no -np" : "-kvu",
    ...(context === undefined || context <= 0 ? {} : { tokens: context }),
  };
}

/**
 * Of slots that share a context only so many are used as can be full at the same time: the engine keeps each of them
 * within its own limit, and nothing else keeps them within the common one.
 */
export function limitToContext<Facts extends Pick<EngineEndpoint, "windowTokens" | "parallelMax">>(
  facts: Facts,
  { tokens = 0 }: SharedContext,
): Facts & Pick<EngineEndpoint, "sharedSlots"> {
  const { windowTokens, parallelMax: slots } = facts;
  if (slots === undefined || windowTokens === undefined) return facts;
  const full = Math.max(1, Math.floor(tokens / windowTokens));
  return full < slots ? { ...facts, parallelMax: full, sharedSlots: slots } : facts;
}

/** Whether its slots share one cache by a flag or the environment. */
export function isUnified({ words, env }: EngineCommandLine): boolean {
  const flag = words.findLast((word) => unified.has(normal(word)) || notUnified.has(normal(word)));
  if (flag !== undefined) return unified.has(normal(flag));
  return ["on", "enabled", "true", "1"].includes(env["LLAMA_ARG_KV_UNIFIED"] ?? "");
}

const embedding = new Set(["--embedding", "--embeddings"]);
const unified = new Set(["-kvu", "--kv-unified"]);
const notUnified = new Set(["-no-kvu", "--no-kv-unified"]);

/** The last one counts, and each of them more than the environment. */
function option({ words, env }: EngineCommandLine, names: readonly string[], variable: string): number | undefined {
  const at = words.findLastIndex((word) => names.includes(normal(word)));
  const value = Number.parseInt((at < 0 ? env[variable] : words[at + 1]) ?? "", 10);
  return Number.isNaN(value) ? undefined : value;
}

function normal(word: string): string {
  return word.startsWith("--") ? word.replaceAll("_", "-") : word;
}
