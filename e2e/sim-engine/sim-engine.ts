/**
 * Simulates an engine for tests and load: an HTTP server with the API of vLLM, llama-server or an OpenAI-style server. It
 * makes tokens at a configured pace, counts them, and fails on demand.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { freePort } from "@weiche/node-agent/src/engines/launchers/loopback-ports.ts";
import { systemClock, type Clock } from "@weiche/shared/time/clock.ts";
import { EngineCore, type CoreState } from "./core.ts";
import { llamaServer } from "./dialects/llama-server.ts";
import { openai } from "./dialects/openai.ts";
import { vllm } from "./dialects/vllm.ts";
import { Faults } from "./faults.ts";
import { Ledger, type JournalLine, type LedgerEntry } from "./ledger.ts";
import { engineDefaults, type EngineFacts } from "./engine-facts.ts";
import { EngineRoutes } from "./routes.ts";
import { TimerWheel } from "./timer-wheel.ts";

const dialects = { vllm, "llama-server": llamaServer, openai };
export type SimDialectName = keyof typeof dialects;

export interface SimEngineOptions extends Partial<Omit<EngineFacts, "model">> {
  readonly model: string;
  /** Defaults to vLLM. */
  readonly dialect?: SimDialectName;
  /** The port on loopback. 0 or undefined chooses a free port. */
  readonly port?: number;
  /** The time to load. Until then connections are refused (vLLM, openai) or answered with 503 (llama-server). */
  readonly startMs?: number;
  /** After that time, the engine still loads while this returns true. */
  readonly isHeld?: () => boolean;
  /** See `faults.ts`. */
  readonly faults?: readonly string[];
  readonly clock?: Clock;
  readonly journal?: (line: JournalLine) => void;
  /** Receives the lines that the engine prints. */
  readonly print?: (line: string) => void;
  /** Called when a fault ends the process. */
  readonly onCrash?: (exitCode: number) => void;
}

export interface SimEngine extends AsyncDisposable {
  readonly origin: string;
  readonly port: number;
  /** Resolves when the engine has loaded, and never with the fault `never-ready`. */
  readonly ready: Promise<void>;
  readonly ignoresSigterm: boolean;
  readonly isSilentAtSigterm: boolean;
  /** Stops listening. Open connections stay open and silent. */
  fallSilent(): void;
  state(): EngineState;
  /** Returns the ledger, oldest request first. */
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
/** How long vLLM's front runs after its core has died. */
const deadFrontMs = 1_000;

export async function startSimEngine(options: SimEngineOptions): Promise<SimEngine> {
  const { clock = systemClock, print = () => {} } = options;
  const facts: EngineFacts = { ...engineDefaults, ...options };
  const dialect = dialects[options.dialect ?? "vllm"];
  const wheel = new TimerWheel(clock);
  const core = new EngineCore(wheel, facts.maxRunning);
  const faults = new Faults(options.faults);
  const ledger = new Ledger(clock, facts.keepBodies, options.journal);
  const sockets = new Set<Socket>();
  let loaded = false;
  let dead = false;
  let server: Server | undefined;
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
    made.listen({ port, host: "127.0.0.1", backlog: 4_096 });
    await once(made, "listening");
    server = made;
    return (made.address() as AddressInfo).port;
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
  // An engine that loads has a port already, but does not listen on it.
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
      await new Promise<void>((resolve) => setImmediate(resolve)); // lets the socket send the last bytes
      shut();
    },
  };
}
