/**
 * What can be seen of an engine's command before it runs: whether it stays on loopback, can sleep, and says what the agent
 * needs to know. Pure. A command that hides its engine (a script, a container, a unit, a file of options) is only warned of.
 */
import { basename } from "node:path";
import type { Finding } from "@weiche/shared/files/config-file.ts";
import { isLoopback } from "@weiche/shared/http/listen.ts";
import type { RawEngine } from "./config-schema.ts";
import { agentEnvironment } from "../engines/launchers/engine-command.ts";
import { isUnified, sharedContext } from "../engines/shared-context.ts";

/** An engine that others can reach is a way around every key and limit, and vLLM's development mode runs code. */
export function* commandMistakes(engine: RawEngine): Iterable<Finding> {
  const command = new EngineCommand(engine);
  for (const host of command.hosts()) {
    if (!isOnlyHere(host)) yield [["command"], `the engine would be reached from elsewhere at ${host}: 127.0.0.1`];
  }
  const far = engine.launcher === "external" && !isOnlyHere(URL.parse(engine.url ?? "")?.hostname ?? "localhost");
  if (!engine.sleep || engine.dialect !== "vllm") return;
  if (far) yield [["url"], "an engine that sleeps has development endpoints that run code: only on loopback"];
  if (command.hasExpandableSegments) yield [["env"], "with expandable_segments:True sleep frees no memory"];
  if (command.runs !== "vllm") return;
  if (!command.has("enable-sleep-mode")) yield [["command"], "sleep needs --enable-sleep-mode"];
  if (!command.hasDevelopmentMode) yield [["env"], 'sleep needs VLLM_SERVER_DEV_MODE: "1"'];
}

export function* commandWarnings(engine: RawEngine): Iterable<Finding> {
  const command = new EngineCommand(engine);
  const isBound = command.has("uds") || command.hosts().length > 0;
  const at: Finding[0] = [engine.launcher === "systemd" ? "unit" : "command"];
  switch (command.runs) {
    case "vllm":
      if (command.stopStringsMax < stopStringsMax)
        yield [["env"], `the service takes ${stopStringsMax} stop strings: remove VLLM_MAX_STOP_STRINGS`];
      if (!isBound) yield [at, "vLLM listens on all addresses: add --host 127.0.0.1, or --uds with {socket}"];
      break;
    case "text-embeddings-router":
      if (!isBound) yield [at, "it listens on all addresses: add --hostname 127.0.0.1"];
      break;
    case "llama-server":
      if (command.value("alias", "-a") !== engine.model) yield [at, `never ready without --alias ${engine.model}`];
      if (!command.has("metrics")) yield [at, "without --metrics nothing is known of its load"];
      if (command.savesPrompts && engine.cachePrompts !== "shared") yield [at, savesPromptsOfAll];
      if (!command.has("no-prefill-assistant") && !command.isForEmbeddings)
        yield [at, "a last message of the assistant would be continued, not answered: add --no-prefill-assistant"];
      if (command.joined !== undefined)
        yield [at, `llama-server refuses ${command.joined}=…: write the value as an item of its own`];
      if (command.embedsSeveralApart)
        yield [at, "texts embedded at the same time would get wrong vectors: add --kv-unified, or -np 1"];
      yield* contextWarnings(at, command);
      break;
    case undefined:
      if (engine.dialect === "llama-server" && engine.launcher === "external" && engine.cachePrompts !== "shared")
        yield [["url"], "not visible here: see that its llama-server was started with --cache-ram 0"];
      if (engine.dialect !== "vllm") return;
      if (engine.launcher === "external") {
        yield [["url"], `not visible here: see that its vLLM was started with VLLM_MAX_STOP_STRINGS=${stopStringsMax}`];
        return;
      }
      yield [
        at,
        `not visible here: see that its vLLM has --host 127.0.0.1${engine.sleep ? " --enable-sleep-mode" : ""}`,
      ];
      if (engine.sleep && !command.hasDevelopmentMode) yield [at, 'sleep needs VLLM_SERVER_DEV_MODE: "1" in env'];
  }
}

const savesPromptsOfAll =
  "--cache-ram keeps the prompts of all accounts together, and the time of a search in it tells of them: remove it, or say cachePrompts: shared";

/**
 * Files and directories of models that the command names and without which it fails. Only what is clearly a path, and only
 * where the engine is run directly: a container has files of its own, and a name that is no path is downloaded.
 */
export function modelPaths(engine: RawEngine): readonly string[] {
  const command = new EngineCommand(engine);
  if (!command.isRunDirectly) return [];
  const named =
    command.runs === "llama-server"
      ? [command.value("model", "-m"), command.value("mmproj", "-mm")]
      : [command.runs === "vllm" ? (command.value("model") ?? command.after("serve")) : undefined];
  const isPath = command.runs === "llama-server" ? /^[^-{$]/ : /^\.{0,2}\//;
  return named.filter((path) => path !== undefined && isPath.test(path)) as string[];
}

/** What the agent sets for engines that it starts. */
const stopStringsMax = Number(agentEnvironment.VLLM_MAX_STOP_STRINGS);

function* contextWarnings(at: Finding[0], command: EngineCommand): Iterable<Finding> {
  const shared = sharedContext(command);
  if (shared?.because === "no -np")
    yield [at, "without -np its slots share one context, and it gets one request at a time: add -np N"];
  else if (shared && shared.tokens === undefined)
    yield [at, "with -kvu its slots share one context, and it gets one request at a time: leave it out"];
  else if (shared)
    yield [at, "with -kvu it gets only as many requests at a time as can fill their slots: leave it out"];
}

const programs = ["vllm", "llama-server", "text-embeddings-router"] as const;

class EngineCommand {
  /** The engine that the command is seen to run. Undefined: it cannot be seen. */
  readonly runs: (typeof programs)[number] | undefined;
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;

  constructor({ command = [], env = {} }: RawEngine) {
    // A shell's line counts like words of their own.
    this.words = command.flatMap((part) => part.split(/\s+/)).map((word) => word.replace(/^["']|["']$/g, ""));
    this.env = env;
    const isPython = this.words.some((word) => word.startsWith("vllm.entrypoints."));
    const seen = isPython ? "vllm" : programs.find((name) => this.words.some((word) => basename(word) === name));
    this.runs = this.has("config") ? undefined : seen;
  }

  /** Not by a shell, a container or another program. */
  get isRunDirectly(): boolean {
    const program = basename(this.words[0] ?? "");
    return program === this.runs || (this.runs === "vllm" && /^python[\d.]*$/.test(program));
  }

  get isForEmbeddings(): boolean {
    return ["embeddings", "embedding", "rerank", "reranking"].some((flag) => this.has(flag));
  }

  /** The word behind this one. */
  after(word: string): string | undefined {
    const at = this.words.indexOf(word);
    return at < 0 ? undefined : this.words[at + 1];
  }

  has(flag: string): boolean {
    return this.words.some((word) => nameOf(word) === `--${flag}`);
  }

  value(flag: string, short = ""): string | undefined {
    const at = this.words.findIndex((word) => nameOf(word) === `--${flag}` || word === short);
    const word = this.words[at];
    if (word === undefined) return undefined;
    return word.includes("=") ? word.slice(word.indexOf("=") + 1) : this.words[at + 1];
  }

  /** Where it is told to listen. What a shell fills in is not seen. */
  hosts(): string[] {
    const told = ["host", "hostname"].map((flag) => (this.has(flag) ? this.value(flag) : undefined));
    if (this.runs === "text-embeddings-router") told.push(this.env["HOSTNAME"]);
    return told.filter((host) => host !== undefined).filter((host) => !host.startsWith("$"));
  }

  /** A flag that is written in one word with its value. */
  get joined(): string | undefined {
    const word = this.words.find((each) => /^--[a-z-]+=/.test(each));
    return word?.slice(0, word.indexOf("="));
  }

  /**
   * llama-server with several slots that do not share their cache: it cuts texts of different lengths that it reads at the
   * same time into pieces, and pools the last piece only.
   */
  get embedsSeveralApart(): boolean {
    if (!this.has("embeddings") && !this.has("embedding")) return false;
    const slots = this.value("parallel", "-np");
    return slots !== undefined && slots !== "1" && !isUnified(this);
  }

  /** llama-server's cache in the host's memory is switched on, which the agent switches off. */
  get savesPrompts(): boolean {
    const told = this.value("cache-ram", "-cram") ?? this.env["LLAMA_ARG_CACHE_RAM"];
    return told !== undefined && Number(told) !== 0;
  }

  get hasDevelopmentMode(): boolean {
    return this.env["VLLM_SERVER_DEV_MODE"] === "1" || this.words.includes("VLLM_SERVER_DEV_MODE=1");
  }

  /** As the configuration says; what it does not say is set by the agent. */
  get stopStringsMax(): number {
    return Number(this.env["VLLM_MAX_STOP_STRINGS"] ?? Infinity);
  }

  get hasExpandableSegments(): boolean {
    return [...Object.values(this.env), ...this.words].some((text) => /expandable_segments:true/i.test(text));
  }
}

/** vLLM takes an option's name with either stroke. */
function nameOf(word: string): string {
  return word.split("=", 1)[0]!.replaceAll("_", "-");
}

/** Also a Unix socket, as llama-server takes one. */
function isOnlyHere(host: string): boolean {
  return isLoopback(host.replace(/^\[|\]$/g, "")) || host === "{socket}" || host.endsWith(".sock");
}
