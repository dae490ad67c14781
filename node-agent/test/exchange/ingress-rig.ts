/** The ingress between a router's end of a real data connection and an engine that is a small real HTTP server. */
import { once } from "node:events";
import { connect, createServer as createTcpServer, type AddressInfo, type Server, type Socket } from "node:net";
import { systemClock, type Clock } from "@weiche/shared/time/clock.ts";
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import { asId, uuidv7, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import type { FrameStream } from "@weiche/shared/frames/frame-stream.ts";
import { FrameConnection } from "@weiche/shared/frames/frame-connection.ts";
import { ends } from "@weiche/shared/frames/frame.ts";
import { nodePaths, readRecord, type NodePath, type RequestRecord } from "@weiche/shared/node-protocol.ts";
import { SimStream } from "@weiche/shared/testing/sim-stream.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { dialects } from "../../src/engines/dialects/all.ts";
import { EngineLife } from "../../src/engines/engine-life.ts";
import type { CachePrompts, DialectName, EngineEndpoint } from "../../src/engines/engine.ts";
import { Ingress, type RequestSummary } from "../../src/exchange/ingress.ts";
import type { UsageOutbox } from "../../src/answer/usage-meter.ts";
import type { Admission, AdmissionRequest, Admissions } from "../../src/slots/admission.ts";
import { EngineLoss } from "../../src/slots/engine-loss.ts";

export const model = asId<ModelId>("model-under-test");
/** A grant. Any text will do, since an agent cannot check it. */
export const grant = "q83vEjRWeJCrze8SNFZ4kA";

export const chatRules: ModelRules = {
  id: model,
  category: "language",
  contextTokens: 1_024,
  reasoning: { mode: "unavailable", efforts: [], templateKwargsAccepted: true },
  toolsEnforced: true,
};

/** A slot whose engine runs; places are counted, waiting can be forced. */
export class SimulatedSlot implements Admissions {
  readonly endpoint: EngineEndpoint;
  readonly dialect: DialectName;
  readonly cachePrompts: CachePrompts | undefined;
  readonly suspected: string[] = [];
  readonly lost: string[] = [];
  readonly requests: AdmissionRequest[] = [];
  /** Requests wait as long as this is pending. */
  gate: Promise<void> = Promise.resolve();
  refusal: ApiError | undefined;
  running = 0;
  readonly #loss = new EngineLoss();

  constructor(endpoint: EngineEndpoint, dialect: DialectName, cachePrompts?: CachePrompts) {
    this.endpoint = endpoint;
    this.dialect = dialect;
    this.cachePrompts = cachePrompts;
  }

  dialectsOf(): readonly DialectName[] {
    return [this.dialect];
  }

  async admit(request: AdmissionRequest): Promise<Admission> {
    const ticket = this.requests.push(request);
    if (this.refusal) throw this.refusal;
    const gone = new Promise<never>((_, reject) =>
      request.signal.addEventListener("abort", () => reject(request.signal.reason as Error), { once: true }),
    );
    await Promise.race([this.gate, gone]);
    request.signal.throwIfAborted();
    this.running++;
    let isHeld = true;
    return {
      slot: asId<SlotName>("a"),
      engine: {
        ...{ model, dialect: this.dialect, launcher: { kind: "external", url: "" }, maxConcurrent: 1_000 },
        cachePrompts: this.cachePrompts,
      },
      endpoint: this.endpoint,
      waitedMs: 0,
      waitedFor: "place",
      onEngineLost: (listener) => this.#loss.listen(ticket, listener),
      release: () => {
        this.#loss.forget(ticket);
        if (isHeld) this.running--;
        isHeld = false;
      },
      suspect: (reason) => this.suspected.push(reason),
      lose: (reason) => {
        this.lost.push(reason);
        this.loseEngine();
      },
    };
  }

  loseEngine(): void {
    this.#loss.tell();
  }
}

/** Keeps records in memory; its disk can be slow, broken or full. */
export class SimulatedOutbox implements UsageOutbox {
  readonly records: UsageRecord[] = [];
  admitting = true;
  sync: () => Promise<void> = () => Promise.resolve();

  async append(record: UsageRecord): Promise<void> {
    await this.sync();
    this.records.push(record);
  }
}

export interface Answer {
  readonly status: number | undefined;
  readonly kind: unknown;
  readonly retryAfter: unknown;
  readonly text: string;
  /** How the END frame ends the answer; undefined: none came. */
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
export interface RecordGiven {
  readonly model?: string;
  readonly factor?: number;
  readonly tokensMax?: number;
  readonly remainingMs?: number;
  readonly bodyBytes?: number;
}

export function recordOf(path: NodePath, requestId: string, given: RecordGiven = {}): RequestRecord {
  const { factor = 1_500, tokensMax = 1_000_000, remainingMs = 600_000, bodyBytes = 0 } = given;
  return [
    ...([path, requestId, 1, given.model ?? model, "", "account-1", "user-1", "key-1", factor] as const),
    ...([tokensMax, grant, remainingMs, "router-1", bodyBytes] as const),
  ];
}

export interface RigOptions {
  readonly dialect?: DialectName;
  readonly cachePrompts?: CachePrompts;
  readonly rules?: ModelRules;
  readonly clock?: Clock;
  /** The clock that measures an engine's silence. Absent: `clock`. */
  readonly lifeClock?: Clock;
  readonly socketPath?: string;
  /** The address of another engine. Absent: the rig starts its own. */
  readonly endpoint?: EngineEndpoint;
  /** The context window that the engine reports. */
  readonly windowTokens?: number;
  /** How long news of the engine's death are waited for; as in production unless told otherwise. */
  readonly newsMsMax?: number;
}

/** Writes to a connection of the engine once a whole request has come. */
export type EngineScript = (socket: Socket, request: EngineSaw) => void;

export interface EngineSaw {
  readonly path: string;
  readonly headers: string;
  readonly body: Record<string, unknown>;
}

/** An engine that does exactly as it is told, down to the bytes. */
export class ScriptedEngine {
  readonly server: Server;
  readonly saw: EngineSaw[] = [];
  readonly sockets = new Set<Socket>();
  connections = 0;
  script: EngineScript;

  constructor(script: EngineScript) {
    this.script = script;
    this.server = createTcpServer({ noDelay: true }, (socket) => {
      this.connections++;
      this.sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => this.sockets.delete(socket));
      let bytes = Buffer.alloc(0);
      socket.on("data", (chunk: Buffer) => {
        bytes = Buffer.concat([bytes, chunk]);
        const headEnd = bytes.indexOf("\r\n\r\n");
        const length = Number(/content-length: (\d+)/i.exec(bytes.toString("latin1", 0, headEnd))?.[1] ?? 0);
        if (headEnd < 0 || bytes.length < headEnd + 4 + length) return;
        const head = bytes.toString("latin1", 0, headEnd);
        const body = JSON.parse(bytes.toString("utf8", headEnd + 4, headEnd + 4 + length) || "{}") as object;
        bytes = bytes.subarray(headEnd + 4 + length);
        const request = { path: head.split(" ")[1]!, headers: head, body: body as Record<string, unknown> };
        this.saw.push(request);
        this.script(socket, request);
      });
    });
  }
}

export class Rig implements AsyncDisposable {
  readonly engine: ScriptedEngine;
  readonly slot: SimulatedSlot;
  readonly outbox = new SimulatedOutbox();
  readonly ingress: Ingress;
  /** Answers that were about to leave whole: their routers and request ids. */
  readonly unsettled: string[][] = [];
  readonly summaries: RequestSummary[] = [];
  readonly faults: string[] = [];
  /** Requests that the engine refused although the service promises them. */
  readonly shortfalls: string[] = [];
  readonly bugs: unknown[] = [];
  readonly life: EngineLife;
  readonly router: FrameConnection;
  readonly #sockets: Socket[];

  static async open(script: EngineScript, options: RigOptions = {}): Promise<Rig> {
    const engine = new ScriptedEngine(script);
    engine.server.listen(options.socketPath ?? { port: 0, host: "127.0.0.1" });
    const meeting = createTcpServer().listen(0, "127.0.0.1");
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
    const { socketPath } = options;
    const own =
      socketPath === undefined
        ? { origin: `http://127.0.0.1:${(engine.server.address() as AddressInfo).port}` }
        : { origin: "http://engine", socketPath };
    const facts = options.windowTokens === undefined ? {} : { windowTokens: options.windowTokens };
    this.slot = new SimulatedSlot(
      { ...(options.endpoint ?? own), ...facts },
      options.dialect ?? "openai",
      options.cachePrompts,
    );
    this.life = new EngineLife(options.lifeClock ?? options.clock ?? systemClock);
    this.ingress = new Ingress({
      life: this.life,
      admissions: this.slot,
      rules: (id) => (id === model ? (options.rules ?? chatRules) : undefined),
      outbox: this.outbox,
      unsettled: { finished: (routerId, { requestId }) => void this.unsettled.push([routerId, requestId]) },
      dialects,
      clock: options.clock ?? systemClock,
      requestMsMax: 600_000,
      ...(options.newsMsMax === undefined ? {} : { newsMsMax: options.newsMsMax }),
      events: {
        requestEnded: (summary) => this.summaries.push(summary),
        engineFault: (_id, _model, _slot, reason, detail) => this.faults.push(`${reason}: ${detail}`),
        engineShortfall: (_id, _model, _slot, detail) => this.shortfalls.push(detail),
        requestBug: (error) => this.bugs.push(error),
      },
    });
    const clock = systemClock;
    const { handle } = this.ingress;
    const take = (stream: FrameStream, record: string) => handle(stream, readRecord(record));
    new FrameConnection(agentSocket, { clock, take, closed() {} });
    this.router = new FrameConnection(routerSocket, { clock, closed() {} });
  }

  send(path: NodePath, body: unknown, given: RecordGiven = {}): Sent {
    const requestId = uuidv7(systemClock);
    const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
    const stream = SimStream.open(this.router, recordOf(path, requestId, { bodyBytes: bytes.length, ...given }));
    const answer = collect(stream);
    stream.frames.write(bytes);
    stream.frames.end(ends.complete);
    return { stream, requestId, answer };
  }

  chat(body: object = {}, given?: RecordGiven): Sent {
    return this.send(nodePaths.chat, { model, messages: [{ role: "user", content: "hi" }], ...body }, given);
  }

  /** Everything that a request holds has been given back. */
  async quiet(): Promise<void> {
    await until(() => this.ingress.running === 0 && this.slot.running === 0, "all requests to end");
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
  const ending = code === undefined ? undefined : code === ends.complete ? "complete" : "error";
  return { status: status as number | undefined, kind, retryAfter, text, ending, code };
}

/** Polls a condition that must come true. */
export async function until(condition: () => boolean, what: string, boundMs = 5_000): Promise<void> {
  const endMs = performance.now() + boundMs;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`waited ${boundMs} ms for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

export function httpHead(status: number, headers: Record<string, string | number>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} X\r\n${lines.join("")}\r\n`;
}

/** An answer of known length, after which the connection stays open. */
export function respond(socket: Socket, status: number, body: string | Buffer, type = "application/json"): void {
  const bytes = Buffer.from(body);
  socket.write(
    Buffer.concat([Buffer.from(httpHead(status, { "content-type": type, "content-length": bytes.length })), bytes]),
  );
}

export function beginEvents(socket: Socket): void {
  socket.write(httpHead(200, { "content-type": "text/event-stream", "transfer-encoding": "chunked" }));
}

export function writeChunk(socket: Socket, text: string | Buffer): void {
  const bytes = Buffer.from(text);
  socket.write(Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]));
}

export function endEvents(socket: Socket): void {
  socket.write("0\r\n\r\n");
}

/** A whole event stream at once. */
export function respondEvents(socket: Socket, text: string | Buffer): void {
  beginEvents(socket);
  writeChunk(socket, text);
  endEvents(socket);
}

export function event(value: unknown): string {
  return `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`;
}

/** The events of an answer, without their envelope. */
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
