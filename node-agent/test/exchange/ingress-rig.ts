/** The ingress between a router's end of a real data connection and an engine that is a small real HTTP server. */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { systemClock, type Clock } from "@weiche/shared/time/clock.ts";
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { asId, uuidv7, type ModelId } from "@weiche/shared/ids.ts";
import type { FrameStream } from "@weiche/shared/frames/frame-stream.ts";
import { FrameConnection } from "@weiche/shared/frames/frame-connection.ts";
import { ends } from "@weiche/shared/frames/frame.ts";
import { nodePaths, readRecord, type NodePath, type RequestRecord } from "@weiche/shared/node-protocol.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { SimStream } from "@weiche/shared/testing/sim-stream.ts";
import { dialects } from "../../src/engines/dialects/all.ts";
import { EngineLife } from "../../src/engines/engine-life.ts";
import type { DialectName, EngineEndpoint } from "../../src/engines/engine.ts";
import { Ingress } from "../../src/exchange/ingress.ts";
import type { RequestSummary } from "../../src/exchange/ingress-events.ts";
import type { UnreadAnswers } from "../../src/exchange/unread-answers.ts";
import { respondEvents, ScriptedEngine, type EngineScript } from "./scripted-engine.ts";
import { SimulatedOutbox, SimulatedSlot, type EngineSettings } from "./simulated-slot.ts";

export const model = asId<ModelId>("model-under-test");
/** A grant. Any text works, because an agent cannot check it. */
const grant = "q83vEjRWeJCrze8SNFZ4kA";

export const chatRules: ModelRules = {
  id: model,
  category: "language",
  contextTokens: 1_024,
  reasoning: { mode: "unavailable", efforts: [], templateKwargsAccepted: true },
  toolsEnforced: true,
};

export interface Answer {
  readonly status: number | undefined;
  readonly kind: unknown;
  readonly retryAfter: unknown;
  readonly text: string;
  /** How the END frame ends the answer. Undefined if none came. */
  readonly ending: "complete" | "error" | undefined;
  /** The code in the END frame. */
  readonly code: number | undefined;
}

export interface Sent {
  readonly stream: SimStream;
  readonly requestId: string;
  readonly answer: Promise<Answer>;
}

/** Fields that replace the defaults in the record of a request. */
interface RecordFields {
  readonly model?: string;
  readonly factor?: number;
  readonly tokensMax?: number;
  readonly remainingMs?: number;
  readonly bodyBytes?: number;
  readonly account?: string;
  /** Defaults to 1. */
  readonly readsDone?: number;
}

export function recordOf(path: NodePath, requestId: string, given: RecordFields = {}): RequestRecord {
  const { factor = 1_500, tokensMax = 1_000_000, remainingMs = 600_000, bodyBytes = 0, account = "account-1" } = given;
  return [
    ...([path, requestId, 1, given.model ?? model, "", account, "user-1", "key-1", factor] as const),
    ...([tokensMax, grant, remainingMs, "router-1", bodyBytes, given.readsDone ?? 1] as const),
  ];
}

export interface RigOptions extends EngineSettings {
  readonly dialect?: DialectName;
  readonly rules?: ModelRules;
  readonly clock?: Clock;
  /** The clock that measures an engine's silence. If undefined, `clock`. */
  readonly lifeClock?: Clock;
  readonly socketPath?: string;
  /** The address of another engine. If undefined, the rig starts its own. */
  readonly endpoint?: EngineEndpoint;
  /** The context window that the engine reports. */
  readonly windowTokens?: number;
  readonly cutsTexts?: boolean;
  /** How long the engine's exit is waited for. Defaults to the value in production. */
  readonly newsMsMax?: number;
  /** Counts the bytes that clients have not read yet. If undefined, a new counter is made. */
  readonly unread?: UnreadAnswers;
}

export class Rig implements AsyncDisposable {
  readonly engine: ScriptedEngine;
  readonly slot: SimulatedSlot;
  readonly outbox = new SimulatedOutbox();
  readonly ingress: Ingress;
  /** Answers that were about to end complete: their routers and request ids. */
  readonly unsettled: string[][] = [];
  readonly summaries: RequestSummary[] = [];
  readonly faults: string[] = [];
  /** Requests that the engine refused although the service promises them. */
  readonly shortfalls: string[] = [];
  readonly unknownFinishes: string[] = [];
  readonly bugs: unknown[] = [];
  readonly life: EngineLife;
  readonly router: FrameConnection;
  readonly #sockets: Socket[];

  /** `says`: the engine's script, or the events with which it answers each request. */
  static async open(says: EngineScript | string, options: RigOptions = {}): Promise<Rig> {
    const engine = new ScriptedEngine(typeof says === "string" ? (socket) => respondEvents(socket, says) : says);
    engine.server.listen(options.socketPath ?? { port: 0, host: "127.0.0.1" });
    const meeting = createServer().listen(0, "127.0.0.1");
    await Promise.all([once(engine.server, "listening"), once(meeting, "listening")]);
    const accepted = once(meeting, "connection") as Promise<[Socket]>;
    const agentSocket = connect((meeting.address() as AddressInfo).port, "127.0.0.1");
    const [routerSocket] = await accepted;
    meeting.close();
    return new Rig(engine, agentSocket, routerSocket, options);
  }

  private constructor(engine: ScriptedEngine, agentSocket: Socket, routerSocket: Socket, options: RigOptions) {
    this.engine = engine;
    this.#sockets = [agentSocket, routerSocket];
    const { socketPath, windowTokens, cutsTexts, dialect = "openai", rules = chatRules, clock = systemClock } = options;
    const { port } = engine.server.address() as AddressInfo; // Undefined for a Unix socket.
    const own = { origin: socketPath === undefined ? `http://127.0.0.1:${port}` : "http://engine", socketPath };
    this.slot = new SimulatedSlot({ ...(options.endpoint ?? own), windowTokens, cutsTexts }, dialect, options);
    this.life = new EngineLife(options.lifeClock ?? clock);
    this.ingress = new Ingress({
      life: this.life,
      admissions: this.slot,
      rules: (id) => (id === model ? rules : undefined),
      outbox: this.outbox,
      unsettled: { finished: (routerId, { requestId }) => void this.unsettled.push([routerId, requestId]) },
      dialects,
      clock,
      requestMsMax: 600_000,
      newsMsMax: options.newsMsMax,
      unread: options.unread,
      events: {
        requestEnded: (summary) => this.summaries.push(summary),
        engineFault: (_id, _model, _slot, reason, detail) => this.faults.push(`${reason}: ${detail}`),
        engineShortfall: (_id, _model, _slot, detail) => this.shortfalls.push(detail),
        unknownFinish: (_id, _model, reason) => this.unknownFinishes.push(reason),
        requestBug: (error) => this.bugs.push(error),
      },
    });
    const take = (stream: FrameStream, record: string) => this.ingress.handle(stream, readRecord(record));
    new FrameConnection(agentSocket, { clock: systemClock, take, closed() {} });
    this.router = new FrameConnection(routerSocket, { clock: systemClock, closed() {} });
  }

  send(path: NodePath, body: unknown, given: RecordFields = {}): Sent {
    const requestId = uuidv7(systemClock);
    const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
    const stream = SimStream.open(this.router, recordOf(path, requestId, { bodyBytes: bytes.length, ...given }));
    const answer = collect(stream);
    stream.frames.write(bytes);
    stream.frames.end(ends.complete);
    return { stream, requestId, answer };
  }

  chat(body: object = {}, given?: RecordFields): Sent {
    return this.send(nodePaths.chat, { model, messages: [{ role: "user", content: "hi" }], ...body }, given);
  }

  /** Resolves when everything that a request holds was released. */
  async quiet(): Promise<void> {
    await until(() => this.ingress.running === 0 && this.slot.running === 0, "all requests to end");
  }

  /** Returns the usage records of all requests, once they have ended. */
  async records(): Promise<readonly UsageRecord[]> {
    await this.quiet();
    return this.outbox.records;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.ingress[Symbol.asyncDispose]();
    this.router.destroy();
    for (const socket of [...this.#sockets, ...this.engine.sockets]) socket.destroy();
    this.engine.server.close();
  }
}

async function collect(stream: SimStream): Promise<Answer> {
  let record: readonly unknown[] = [];
  stream.once("head", (head) => (record = head));
  const text = String(await stream.read());
  const { ending: code } = stream;
  const [status, kind, retryAfter] = record;
  // With the status of an error, the code only names the cause.
  const faults: unknown[] = [ends.nodeFailed, ends.engineLost, ends.nodeBusy, ends.engineRefused, ends.engineAway];
  const isOfError = status !== 200 && faults.includes(code);
  const ending = code === undefined ? undefined : code === ends.complete || isOfError ? "complete" : "error";
  return { status: status as number | undefined, kind, retryAfter, text, ending, code };
}

/** Polls a condition that must become true. */
export async function until(condition: () => boolean, what: string, boundMs = 5_000): Promise<void> {
  const endMs = performance.now() + boundMs;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`waited ${boundMs} ms for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** Returns the events of an answer, without their envelope. */
export function choicesOf(text: string): unknown[] {
  return eventsOf(text)
    .filter((data) => data !== "[DONE]")
    .map((data) => {
      const { choices, usage, error } = JSON.parse(data) as Record<string, unknown>;
      return error ?? usage ?? (choices as unknown[])[0];
    });
}

export function eventsOf(text: string): string[] {
  const events = text.split("\n\n");
  if (events.pop() !== "") throw new Error("the stream does not end with an empty line");
  return events.map((line) => {
    if (!line.startsWith("data: ")) throw new Error(`not an event: ${line.slice(0, 80)}`);
    return line.slice(6);
  });
}
