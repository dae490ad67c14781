/**
 * A simulated engine: an HTTP server that talks as vLLM, llama-server or an OpenAI-style server does, makes tokens at a
 * set pace, counts them, and fails on demand. It stands where a real engine would, for tests, chaos and load.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import { freePort } from "@weiche/node-agent/src/engines/launchers/loopback-ports.ts";
import { systemClock, type Clock } from "@weiche/shared/time/clock.ts";
import { EngineCore, type CoreState } from "./core.ts";
import { llamaServer } from "./dialects/llama-server.ts";
import { openai } from "./dialects/openai.ts";
import { vllm } from "./dialects/vllm.ts";
import { Faults } from "./faults.ts";
import { Ledger, type JournalLine, type LedgerEntry } from "./ledger.ts";
import type { EngineFacts } from "./engine-facts.ts";
import { EngineRoutes } from "./routes.ts";
import { TimerWheel } from "./timer-wheel.ts";

const dialects = { vllm, "llama-server": llamaServer, openai };
export type SimDialectName = keyof typeof dialects;

export interface SimEngineOptions {
  readonly model: string;
  readonly dialect?: SimDialectName;
  /** On loopback. 0 or absent: any free one. */
  readonly port?: number;
  readonly socketPath?: string;
  /** Time to load. Until then connections are refused (vLLM, openai) or answered with 503 (llama-server). */
  readonly startMs?: number;
  /** After that it loads for as long as this is true. */
  readonly isHeld?: () => boolean;
  readonly ttftMs?: number;
  readonly itlMs?: number;
  /** Tokens of an answer that nothing else bounds. */
  readonly tokens?: number;
  readonly reasoningTokens?: number;
  readonly contextTokens?: number;
  /** Requests that run at once; more wait, without bound. */
  readonly maxRunning?: number;
  readonly sleepMs?: number;
  readonly wakeMs?: number;
  readonly embeddingDimensions?: number;
  /** Stop strings that vLLM takes; 4 unless its environment says otherwise. */
  readonly stopStringsMax?: number;
  /** See `faults.ts`. */
  readonly faults?: readonly string[];
  readonly clock?: Clock;
  readonly journal?: (line: JournalLine) => void;
  /** Keeps the bodies of requests in the ledger. For tests of what reaches an engine. */
  readonly keepBodies?: boolean;
  /** llama-server: false is `--cache-ram 0`. */
  readonly savesPrompts?: boolean;
  /** Takes what the engine prints. Absent: nobody sees it. */
  readonly print?: (line: string) => void;
  /** Called when a fault ends the process. Absent: the server just dies. */
  readonly onCrash?: (exitCode: number) => void;
}

export interface SimEngine extends AsyncDisposable {
  readonly origin: string;
  readonly port: number;
  /** Resolves when it has loaded; never with the fault `never-ready`. */
  readonly ready: Promise<void>;
  readonly ignoresSigterm: boolean;
  readonly isSilentAtSigterm: boolean;
  /** Listens no more; what is open stays open, and nothing comes. */
  fallSilent(): void;
  state(): EngineState;
  /** What it really did, oldest first. */
  requests(): LedgerEntry[];
  /** Replaces the faults of the engine. */
  setFaults(faults: readonly string[]): void;
  /** Dies at once, as if killed. */
  crash(): void;
}

export interface EngineState extends CoreState {
  readonly loaded: boolean;
}

const heldPollMs = 20;
/** How long vLLM's front outlives its core. */
const deadFrontMs = 1_000;

export async function startSimEngine(options: SimEngineOptions): Promise<SimEngine> {
  const clock = options.clock ?? systemClock;
  const dialect = dialects[options.dialect ?? "vllm"];
  const wheel = new TimerWheel(clock);
  const core = new EngineCore(wheel, options.maxRunning ?? 256);
  const faults = new Faults(options.faults);
  const ledger = new Ledger(clock, options.keepBodies, options.journal);
  const sockets = new Set<Socket>();
  let loaded = false;
  let server: Server | undefined;

  const facts: EngineFacts = {
    model: options.model,
    ttftMs: options.ttftMs ?? 10,
    itlMs: options.itlMs ?? 5,
    tokens: options.tokens ?? 20,
    reasoningTokens: options.reasoningTokens ?? 5,
    contextTokens: options.contextTokens ?? 32_768,
    maxRunning: options.maxRunning ?? 256,
    sleepMs: options.sleepMs ?? 10,
    wakeMs: options.wakeMs ?? 10,
    embeddingDimensions: options.embeddingDimensions ?? 2_048,
    stopStringsMax: options.stopStringsMax ?? 4,
    keepBodies: options.keepBodies ?? false,
    savesPrompts: options.savesPrompts ?? true,
  };
  let dead = false;
  const print = options.print ?? (() => {});
  const states = { loaded: () => loaded, coreIsDead: () => dead };
  const parts = { facts, dialect, clock, wheel, core, faults, ledger, crash, coreDies, print, ...states };
  const routes = new EngineRoutes(parts);

  function crash(exitCode = 1): void {
    ledger.closeAll();
    ledger.note("crash");
    shut();
    options.onCrash?.(exitCode);
  }

  function coreDies(): void {
    dead = true;
    core.failAll();
    void core.delay(deadFrontMs).then(() => crash(0));
  }

  function shut(): void {
    wheel.close();
    server?.close();
    for (const socket of sockets) socket.resetAndDestroy();
  }

  async function listen(port: number): Promise<number> {
    const made = createServer({ keepAliveTimeout: 5_000, requestTimeout: 0, headersTimeout: 0 }, (request, response) =>
      routes.handle(request, response),
    );
    made.on("connection", (socket: Socket) => {
      socket.setNoDelay(true);
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    });
    if (options.socketPath === undefined) made.listen({ port, host: "127.0.0.1", backlog: 4_096 });
    else made.listen(options.socketPath);
    await once(made, "listening");
    server = made;
    const address = made.address();
    return typeof address === "object" && address ? address.port : 0;
  }

  async function load(port: number): Promise<void> {
    ledger.note("loading");
    await core.delay(options.startMs ?? 0);
    while (options.isHeld?.()) await core.delay(heldPollMs);
    if (faults.take("start")?.kind === "crash") return crash();
    if (faults.has("never-ready")) return new Promise(() => {});
    if (!server) await listen(port);
    loaded = true;
    ledger.note("awake");
  }

  const listensAtOnce = dialect.listensWhileLoading || (!options.startMs && !options.faults?.length);
  // An engine that loads has its port, but does not listen on it.
  const port = listensAtOnce ? await listen(options.port ?? 0) : options.port || (await freePort());
  const loading = load(port);
  if (!options.startMs && listensAtOnce) await loading;

  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    ready: loading,
    get ignoresSigterm() {
      return faults.has("ignore-sigterm");
    },
    get isSilentAtSigterm() {
      return faults.has("silent-at-sigterm");
    },
    fallSilent() {
      wheel.close();
      server?.close();
    },
    state: () => ({ loaded, ...core.state() }),
    requests: () => ledger.entries(),
    setFaults: (texts) => faults.set(texts),
    crash,
    [Symbol.asyncDispose]: async () => {
      core.abortAll();
      ledger.closeAll();
      ledger.note("exit");
      server?.close();
      await new Promise<void>((resolve) => setImmediate(resolve)); // lets the last bytes leave
      shut();
    },
  };
}
