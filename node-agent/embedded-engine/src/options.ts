import { basename } from "node:path";
import { parseArgs } from "node:util";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { isLoopback } from "@weiche/shared/http/listen.ts";

export interface Options {
  readonly modelFile: string;
  /** The model id in every answer. */
  readonly alias: string;
  readonly listen: { readonly host: string; readonly port: number } | { readonly path: string };
  /** The most tokens of a prompt and its answer together. If undefined, the model's training context, at most 4,096. */
  readonly contextTokens?: number;
  /** The number of answers at once. Each has its own context. */
  readonly parallel: number;
  readonly threads: number;
  /** Serves embeddings and no chat. */
  readonly embeddings: boolean;
  readonly gpu: boolean;
}

/**
 * Reads the arguments. `cpus`: the processors that this process may use. One of them is left to Node.js: llama.cpp
 * waits by spinning, so that two threads on two busy processors are four times slower than one thread.
 */
export function readOptions(args: readonly string[], cpus: number): Options {
  const values = parse(args);
  if (values.model === undefined) throw new StartError("--model FILE.gguf is missing");
  return {
    modelFile: values.model,
    alias: values.alias ?? basename(values.model, ".gguf"),
    contextTokens: whole("context", values.context, 16, 16_777_216),
    listen: readListen(values),
    parallel: whole("parallel", values.parallel, 1, 64) ?? 4,
    threads: whole("threads", values.threads, 1, 512) ?? Math.max(1, cpus - 1),
    embeddings: values.embeddings,
    gpu: values.gpu,
  };
}

function parse(args: readonly string[]) {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        model: { type: "string" },
        alias: { type: "string" },
        host: { type: "string", default: "127.0.0.1" },
        port: { type: "string" },
        socket: { type: "string" },
        context: { type: "string" },
        parallel: { type: "string" },
        threads: { type: "string" },
        embeddings: { type: "boolean", default: false },
        gpu: { type: "boolean", default: false },
      },
    });
    return values;
  } catch (error) {
    throw new StartError((error as Error).message.split(/\. |\n/)[0]!);
  }
}

function readListen(values: { host: string; port?: string; socket?: string }): Options["listen"] {
  if (values.socket !== undefined) return { path: values.socket };
  if (!isLoopback(values.host)) throw new StartError(`--host ${values.host} is not loopback: the engine has no keys`);
  const port = whole("port", values.port, 0, 65_535);
  if (port === undefined) throw new StartError("--port N or --socket PATH is missing");
  return { host: values.host, port };
}

function whole(name: string, text: string | undefined, minimum: number, maximum: number): number | undefined {
  if (text === undefined) return undefined;
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= minimum && value <= maximum) return value;
  throw new StartError(`--${name} must be a whole number from ${minimum} to ${maximum}, not "${text}"`);
}
