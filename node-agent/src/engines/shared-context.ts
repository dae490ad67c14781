/**
 * llama-server's slots can share one context (with `-kvu`, or without `-np`). Each slot may then fill all of it, and if
 * they together need more, every answer breaks off. Only the command line shows that they share.
 */
import type { EngineEndpoint } from "./engine.ts";

export interface EngineCommandLine {
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

interface SharedContext {
  /** The context of all slots together. If undefined, it is as large as the limit of one slot. */
  readonly tokens?: number;
  readonly because: "no -np" | "-kvu";
}

/** Returns undefined if each slot has its own context, or needs at most a batch, as for embeddings. */
export function sharedContext(command: EngineCommandLine): SharedContext | undefined {
  if (command.words.some((word) => embedding.has(normal(word)))) return undefined;
  const slots = option(command, ["-np", "--parallel"], "LLAMA_ARG_N_PARALLEL") ?? -1;
  if (slots === 1 || (slots > 1 && !isUnified(command))) return undefined;
  const context = option(command, ["-c", "--ctx-size"], "LLAMA_ARG_CTX_SIZE");
  const perSlot = option(command, ["--kv-unified-per-slot"], "LLAMA_ARG_KV_UNIFIED_PER_SLOT") ?? 0;
  // llama-server then makes the context large enough for all slots.
  if (perSlot > 0 && context === undefined) return undefined;
  return {
    because: slots < 0 ? "no -np" : "-kvu",
    tokens: context !== undefined && context > 0 ? context : undefined,
  };
}

/** Lowers `parallelMax` to the number of slots that can be full at once, because nothing enforces the shared limit. */
export function limitToContext<Facts extends Pick<EngineEndpoint, "windowTokens" | "parallelMax">>(
  facts: Facts,
  { tokens = 0 }: SharedContext,
): Facts & Pick<EngineEndpoint, "sharedSlots"> {
  const { windowTokens, parallelMax: slots } = facts;
  if (slots === undefined || windowTokens === undefined) return facts;
  const full = Math.max(1, Math.floor(tokens / windowTokens));
  return full < slots ? { ...facts, parallelMax: full, sharedSlots: slots } : facts;
}

/** Returns whether a flag or the environment makes its slots share one KV cache. */
export function isUnified({ words, env }: EngineCommandLine): boolean {
  const flag = words.findLast((word) => unified.has(normal(word)) || notUnified.has(normal(word)));
  if (flag !== undefined) return unified.has(normal(flag));
  return ["on", "enabled", "true", "1"].includes(env["LLAMA_ARG_KV_UNIFIED"] ?? "");
}

const embedding = new Set(["--embedding", "--embeddings"]);
const unified = new Set(["-kvu", "--kv-unified"]);
const notUnified = new Set(["-no-kvu", "--no-kv-unified"]);

/** The last occurrence of a flag counts, and any flag overrides the environment. */
function option({ words, env }: EngineCommandLine, names: readonly string[], variable: string): number | undefined {
  const at = words.findLastIndex((word) => names.includes(normal(word)));
  const value = Number.parseInt((at < 0 ? env[variable] : words[at + 1]) ?? "", 10);
  return Number.isNaN(value) ? undefined : value;
}

function normal(word: string): string {
  return word.startsWith("--") ? word.replaceAll("_", "-") : word;
}
