/**
 * Checks whether an engine's command listens on loopback only, can sleep, and exposes the endpoints that the agent
 * needs. Pure. A command that hides its engine (a script, a container, a unit, a file of options) only causes warnings.
 */
import { basename } from "node:path";
import { nearest, type Finding } from "@weiche/shared/files/config-file.ts";
import { isLoopback } from "@weiche/shared/http/listen.ts";
import type { RawEngine } from "./config-schema.ts";
import { modelsOf } from "./engine-models.ts";
import { agentEnvironment } from "../engines/launchers/engine-command.ts";
import { isUnified, sharedContext } from "../engines/shared-context.ts";

/** An engine that other hosts can reach bypasses all keys and limits, and vLLM's development mode executes code. */
export function* commandMistakes(engine: RawEngine): Iterable<Finding> {
  const command = new EngineCommand(engine);
  for (const host of command.hosts()) {
    if (!isOnlyHere(host)) yield [["command"], `other hosts could reach the engine at ${host}: use 127.0.0.1`];
  }
  yield* unservedModels(engine, command);
  const far = engine.launcher === "external" && !isOnlyHere(URL.parse(engine.url ?? "")?.hostname ?? "localhost");
  if (!engine.sleep || engine.dialect !== "vllm") return;
  if (far) yield [["url"], "an engine that sleeps has development endpoints that execute code: use loopback only"];
  if (command.hasExpandableSegments) yield [["env"], "with expandable_segments:True sleep frees no memory"];
  if (command.runs !== "vllm") return;
  if (!command.has("enable-sleep-mode")) yield [["command"], "sleep needs --enable-sleep-mode"];
  if (!command.hasDevelopmentMode) yield [["env"], 'sleep needs VLLM_SERVER_DEV_MODE: "1"'];
}

/** Finds models that a visible command would not serve, so that the engine would never become ready. */
function* unservedModels(engine: RawEngine, command: EngineCommand): Iterable<Finding> {
  const served = command.served;
  if (command.runs === "vllm" && command.has("lora-modules") && !command.has("enable-lora"))
    yield [["command"], "--lora-modules needs --enable-lora"];
  if (!served || (engine.model !== undefined && (engine.models || !command.has("served-model-name")))) return;
  for (const [index, model] of modelsOf(engine).entries()) {
    if (served.includes(model)) continue;
    const flags = command.runs === "vllm" ? "--served-model-name or --lora-modules" : "--alias";
    const meant = nearest(model, served);
    const hint = meant === undefined ? "" : ` Did you mean "${meant}"?`;
    yield [
      engine.model === undefined ? ["models", index] : ["model"],
      `the command does not serve "${model}": name it in ${flags}.${hint}`,
    ];
  }
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
      if (command.crowdedAdapters) yield [at, crowded(command.crowdedAdapters)];
      break;
    case "text-embeddings-router":
      if (!isBound) yield [at, "it listens on all addresses: add --hostname 127.0.0.1"];
      break;
    case "llama-server":
      if (engine.model !== undefined && !command.served!.includes(engine.model))
        yield [at, `never becomes ready without --alias ${engine.model}`];
      if (!command.has("metrics")) yield [at, "without --metrics its load is unknown"];
      if (command.savesPrompts && engine.cachePrompts !== "shared") yield [at, savesPromptsOfAll];
      if (!command.has("no-prefill-assistant") && !command.isForEmbeddings)
        yield [at, "a final message of the assistant would be continued, not answered: add --no-prefill-assistant"];
      if (command.joined !== undefined)
        yield [at, `llama-server refuses ${command.joined}=…: write the value as a separate item`];
      if (command.embedsSeveralApart)
        yield [at, "texts that are embedded at the same time would get wrong vectors: add --kv-unified, or -np 1"];
      yield* contextWarnings(at, command);
      break;
    case undefined:
      if (engine.dialect === "llama-server" && engine.launcher === "external" && engine.cachePrompts !== "shared")
        yield [["url"], "not visible in this command: make sure that its llama-server was started with --cache-ram 0"];
      if (engine.dialect !== "vllm") return;
      if (engine.launcher === "external") {
        yield [
          ["url"],
          `not visible in this command: make sure that its vLLM was started with VLLM_MAX_STOP_STRINGS=${stopStringsMax}`,
        ];
        return;
      }
      yield [
        at,
        `not visible in this command: make sure that its vLLM has --host 127.0.0.1${engine.sleep ? " --enable-sleep-mode" : ""}`,
      ];
      if (engine.sleep && !command.hasDevelopmentMode) yield [at, 'sleep needs VLLM_SERVER_DEV_MODE: "1" in env'];
  }
}

function crowded({ all, atOnce }: NonNullable<EngineCommand["crowdedAdapters"]>): string {
  return `vLLM runs ${atOnce} of ${all} adapters at once, and requests for the others wait inside it: add --max-loras ${all}`;
}

const savesPromptsOfAll =
  "--cache-ram keeps the prompts of all accounts together, and response times reveal them: remove it, or set cachePrompts: shared";

/**
 * Returns the model files and directories that the command needs. Returns only clear paths of engines that are run
 * directly: a container has its own files, and a model's name is downloaded.
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

/** The number of stop strings that the agent sets for engines that it starts. */
const stopStringsMax = Number(agentEnvironment.VLLM_MAX_STOP_STRINGS);

function* contextWarnings(at: Finding[0], command: EngineCommand): Iterable<Finding> {
  const shared = sharedContext(command);
  if (shared?.because === "no -np")
    yield [at, "without -np its slots share one context, and it gets one request at a time: add -np N"];
  else if (shared && shared.tokens === undefined)
    yield [at, "with -kvu its slots share one context, and it gets one request at a time: remove it"];
  else if (shared)
    yield [at, "with -kvu it gets at most as many requests at a time as can fill their slots: remove it"];
}

const programs = ["vllm", "llama-server", "text-embeddings-router"] as const;

class EngineCommand {
  /** The engine that the command visibly runs. Undefined if the command hides it. */
  readonly runs: (typeof programs)[number] | undefined;
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;

  constructor({ command = [], env = {} }: RawEngine) {
    // A line for a shell is split into words too.
    this.words = command.flatMap((part) => part.split(/\s+/)).map((word) => word.replace(/^["']|["']$/g, ""));
    this.env = env;
    const isPython = this.words.some((word) => word.startsWith("vllm.entrypoints."));
    const seen = isPython ? "vllm" : programs.find((name) => this.words.some((word) => basename(word) === name));
    this.runs = this.has("config") ? undefined : seen;
  }

  /** Whether the engine runs without a shell, container or other program around it. */
  get isRunDirectly(): boolean {
    const program = basename(this.words[0] ?? "");
    return program === this.runs || (this.runs === "vllm" && /^python[\d.]*$/.test(program));
  }

  get isForEmbeddings(): boolean {
    return ["embeddings", "embedding", "rerank", "reranking"].some((flag) => this.has(flag));
  }

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

  /** Returns the words after the last of these flags, up to the next flag. Only the last flag counts. */
  #values(flag: string): string[] {
    const at = this.words.findLastIndex((word) => nameOf(word) === `--${flag}`);
    const word = this.words[at];
    if (word === undefined) return [];
    if (word.includes("=")) return [word.slice(word.indexOf("=") + 1)];
    const rest = this.words.slice(at + 1);
    const end = rest.findIndex((each) => each.startsWith("-"));
    return end < 0 ? rest : rest.slice(0, end);
  }

  /** The model names that the engine serves. Undefined if the command hides them. */
  get served(): readonly string[] | undefined {
    if (this.runs === "llama-server")
      return (this.value("alias", "-a") ?? this.env["LLAMA_ARG_ALIAS"] ?? "").split(",").map((name) => name.trim());
    if (this.runs !== "vllm") return undefined;
    const named = this.#values("served-model-name");
    const base = named.length > 0 ? named : [this.value("model") ?? this.after("serve") ?? ""];
    const served = [...base, ...this.#adapters];
    return served.some((name) => name.includes("$")) ? undefined : served;
  }

  get #adapters(): readonly string[] {
    const modules = this.#values("lora-modules");
    const short = modules.filter((word) => /^[^{"]+=/.test(word)).map((word) => word.slice(0, word.indexOf("=")));
    // Words were split at spaces and have lost quotes at their ends, including quotes of JSON.
    const inJson = [...modules.join(" ").matchAll(/(?<!\w)name": ?"?([^", }]+)/g)].map(([, name]) => name!);
    return [...short, ...inJson];
  }

  /** Adapters, of which vLLM runs fewer at once than there are. Undefined if it runs all of them at once. */
  get crowdedAdapters(): { readonly all: number; readonly atOnce: number } | undefined {
    const [all, atOnce] = [this.#adapters.length, Number(this.value("max-loras") ?? 1)];
    return all > atOnce ? { all, atOnce } : undefined;
  }

  /** Returns the hosts to listen on, without variables of a shell. */
  hosts(): string[] {
    const told = ["host", "hostname"].map((flag) => (this.has(flag) ? this.value(flag) : undefined));
    if (this.runs === "text-embeddings-router") told.push(this.env["HOSTNAME"]);
    return told.filter((host) => host !== undefined).filter((host) => !host.startsWith("$"));
  }

  /** The first flag that is written as `--flag=value`. */
  get joined(): string | undefined {
    const word = this.words.find((each) => /^--[a-z-]+=/.test(each));
    return word?.slice(0, word.indexOf("="));
  }

  /**
   * Whether llama-server embeds with several slots that share no cache. It would split texts that arrive at the same
   * time, and pool only their last pieces.
   */
  get embedsSeveralApart(): boolean {
    if (!this.has("embeddings") && !this.has("embedding")) return false;
    const slots = this.value("parallel", "-np");
    return slots !== undefined && slots !== "1" && !isUnified(this);
  }

  /** Whether llama-server's prompt cache in host memory is on. The agent switches it off. */
  get savesPrompts(): boolean {
    const told = this.value("cache-ram", "-cram") ?? this.env["LLAMA_ARG_CACHE_RAM"];
    return told !== undefined && Number(told) !== 0;
  }

  get hasDevelopmentMode(): boolean {
    return this.env["VLLM_SERVER_DEV_MODE"] === "1" || this.words.includes("VLLM_SERVER_DEV_MODE=1");
  }

  /** The configured maximum. Infinity if unset, because the agent then sets it. */
  get stopStringsMax(): number {
    return Number(this.env["VLLM_MAX_STOP_STRINGS"] ?? Infinity);
  }

  get hasExpandableSegments(): boolean {
    return [...Object.values(this.env), ...this.words].some((text) => /expandable_segments:true/i.test(text));
  }
}

/** vLLM accepts both `-` and `_` in the name of an option. */
function nameOf(word: string): string {
  return word.split("=", 1)[0]!.replaceAll("_", "-");
}

/** Returns whether the host is loopback or a Unix socket, which llama-server accepts as a host. */
function isOnlyHere(host: string): boolean {
  return isLoopback(host.replace(/^\[|\]$/g, "")) || host === "{socket}" || host.endsWith(".sock");
}
