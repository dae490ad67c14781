/** Loads the model file and creates the objects that generate answers. */
import { stat } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import {
  getLlama,
  LlamaLogLevel,
  readGgufFileInfo,
  type Llama,
  type LlamaContextSequence,
  type LlamaEmbeddingContext,
  type LlamaModel,
  type Token,
} from "node-llama-cpp";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { ChatTemplate } from "./chat-prompt.ts";
import { Metrics, type Load } from "./metrics.ts";
import type { Options } from "./options.ts";
import { Pool } from "./pool.ts";
import { Vocabulary } from "./grammar/vocabulary.ts";

const contextTokensDefault = 4_096;
/** Prompt tokens between two checks whether the client is still there. A GPU needs larger steps. */
const prefillTokens = { cpu: 128, gpu: 512 };

export interface Engine {
  readonly alias: string;
  readonly llama: Llama;
  readonly model: LlamaModel;
  /** Limit of a prompt and its answer together. */
  readonly contextTokens: number;
  readonly prefillTokens: number;
  readonly template: ChatTemplate;
  readonly vocabulary: Vocabulary;
  readonly metrics: Metrics;
  /** Undefined in an engine for embeddings. */
  readonly sequences?: Pool<LlamaContextSequence>;
  readonly embeddings?: {
    readonly contexts: Pool<LlamaEmbeddingContext>;
    /** Counts the tokens of a text, including those that the model adds around it. */
    readonly countTokens: (tokens: Token[]) => number;
  };
  load(): Load;
}

/**
 * Loads the model. `log` gets llama.cpp's warnings, which do not contain prompts. A failed start throws a single line.
 */
export async function loadEngine(options: Options, log: (line: string) => void): Promise<Engine> {
  const said: string[] = [];
  let warn = (line: string): void => void said.push(line);
  try {
    await stat(options.modelFile);
    const engine = await load(options, (line) => warn(line));
    for (const line of said) log(line);
    warn = log;
    return engine;
  } catch (error) {
    // Messages of llama.cpp arrive slightly later.
    await setImmediate();
    throw new StartError(`cannot load ${options.modelFile}: ${reason(error as NodeJS.ErrnoException, said)}`);
  }
}

async function load(options: Options, warn: (line: string) => void): Promise<Engine> {
  const llama = await getLlama({
    gpu: options.gpu ? "auto" : false,
    build: "never",
    skipDownload: true,
    progressLogs: false,
    maxThreads: options.threads,
    // By default, the library refuses to use the last gigabyte of memory, even for a model of three megabytes.
    ramPadding: 0,
    logLevel: LlamaLogLevel.warn,
    logger: (_level, message) => warn(message.trim()),
  });
  const model = await llama.loadModel({ modelPath: options.modelFile, ...(await pooling(options)) });
  const contextTokens = options.contextTokens ?? Math.min(model.trainContextSize, contextTokensDefault);
  const template = readTemplate(model, warn);
  const vocabulary = new Vocabulary(model, template.thinking ? Object.values(template.thinking) : []);
  const common = {
    alias: options.alias,
    llama,
    model,
    contextTokens,
    prefillTokens: options.gpu ? prefillTokens.gpu : prefillTokens.cpu,
    template,
    vocabulary,
    metrics: new Metrics(),
  };
  return options.embeddings
    ? { ...common, ...(await makeEmbeddings(model, contextTokens, options.threads)) }
    : { ...common, ...(await makeSequences(model, contextTokens, options)) };
}

async function makeSequences(model: LlamaModel, contextTokens: number, options: Options) {
  const context = await model.createContext({
    contextSize: contextTokens,
    sequences: options.parallel,
    threads: options.threads,
    failedCreationRemedy: false,
  });
  const all = Array.from({ length: options.parallel }, () => context.getSequence());
  const sequences = new Pool(all);
  const load = (): Load => ({
    running: sequences.lent.size,
    waiting: sequences.waiting,
    contextUse:
      sequences.lent.values().reduce((sum, one) => sum + one.nextTokenIndex, 0) / (contextTokens * all.length),
  });
  return { sequences, load };
}

/** Computes one text at a time, because llama.cpp pools a text in one batch. */
async function makeEmbeddings(model: LlamaModel, contextTokens: number, threads: number) {
  // One more token, because node-llama-cpp refuses a text that fills the context exactly.
  const context = await model.createEmbeddingContext({
    contextSize: contextTokens + 1,
    batchSize: contextTokens + 1,
    threads,
  });
  const contexts = new Pool([context]);
  const countTokens = (tokens: Token[]) => context.calculateInputLength(tokens);
  const load = (): Load => ({ running: contexts.lent.size, waiting: contexts.waiting, contextUse: 0 });
  return { embeddings: { contexts, countTokens }, load };
}

/** Returns how vectors are pooled. The default is the mean. */
async function pooling(options: Options) {
  if (!options.embeddings) return {};
  const file = await readGgufFileInfo(options.modelFile, { logWarnings: false });
  if (file.architectureMetadata.pooling_type !== undefined) return {};
  const mean = 1;
  return { metadataOverrides: { [file.metadata.general.architecture]: { pooling_type: mean } } };
}

function readTemplate(model: LlamaModel, warn: (line: string) => void): ChatTemplate {
  const { bosString, eosString } = model.tokens;
  const special = { bos_token: bosString ?? "", eos_token: eosString ?? "" };
  const source = model.fileInfo.metadata.tokenizer.chat_template;
  try {
    return new ChatTemplate(source, special);
  } catch {
    warn("the model's chat template cannot be read; a plain one is used");
    return new ChatTemplate(undefined, special);
  }
}

/** Returns one line: the error, and llama.cpp's first message. */
function reason(error: NodeJS.ErrnoException, said: readonly string[]): string {
  if (error.code === "ENOENT") return "no such file";
  const message = error.message.split("\n")[0]!;
  return said.length > 0 ? `${message} (${said[0]})` : message;
}
