/**
 * Serves requests: read, admitted by a slot, answered by an engine, recorded, closed. Every request gives its place
 * back and ends in exactly one way, in `#serve` or in `#breakOff`.
 */
import { ByteBudget } from "@weiche/shared/http/byte-budget.ts";
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import type { FrameStream, StreamSink } from "@weiche/shared/frames/frame-stream.ts";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import type { ModelId } from "@weiche/shared/ids.ts";
import { nodeRequestsMax, type NodeFault, type NodeRequest } from "@weiche/shared/node-protocol.ts";
import { TransientMap } from "@weiche/shared/transient-map.ts";
import type { Dialect } from "../engines/dialects/dialect.ts";
import { EngineFault, type EngineFaultReason } from "../engines/dialects/engine-fault.ts";
import type { DialectName } from "../engines/engine.ts";
import type { EngineLife } from "../engines/engine-life.ts";
import type { Admission, Admissions } from "../slots/admission.ts";
import type { UnsettledAnswers } from "../outbox/unsettled-answers.ts";
import { afterNews, engineNewsMsMax } from "../answer/engine-news.ts";
import { EngineConnections } from "../answer/engine-connections.ts";
import type { FinishedAnswer } from "../answer/engine-work.ts";
import { engineAccess, type EngineAccessParts } from "./engine-access.ts";
import { EngineDoubts } from "./engine-doubts.ts";
import { Ended, Exchange } from "./exchange.ts";
import type { IngressEvents } from "./ingress-events.ts";
import { WorkReader } from "./read-work.ts";
import { bodyBytesMax } from "../intake/request-body.ts";
import type { TokenCounts } from "../answer/usage-count.ts";
import { readRequestHead } from "../intake/request-head.ts";
import { UsageMeter, type UsageOutbox } from "../answer/usage-meter.ts";
import { errorOf } from "./request-error.ts";
import { RequestRun } from "./request-run.ts";
import { unfinishedOutcome } from "./unfinished-outcome.ts";
import { UnreadAnswers } from "./unread-answers.ts";

interface IngressParts {
  readonly admissions: Admissions;
  /** Rules that the router sent; undefined for a model of which none have come yet. */
  readonly rules: (model: ModelId) => ModelRules | undefined;
  readonly outbox: UsageOutbox;
  readonly unsettled: Pick<UnsettledAnswers, "finished">;
  readonly dialects: Readonly<Record<DialectName, Dialect>>;
  readonly clock: Clock;
  readonly life: EngineLife;
  /** Time limit of a request; the remaining time that the router sends counts if it is shorter. */
  readonly requestMsMax: number;
  /** How long a request whose connection to the engine broke waits to hear whether the engine died. Default 400. */
  readonly newsMsMax?: number;
  /** Counts what clients have not read yet. Absent: it begins empty. */
  readonly unread?: UnreadAnswers;
  readonly events: IngressEvents;
}

interface RunningRequest {
  readonly exchange: Exchange;
  /** Resolves when the request has ended. */
  served?: Promise<void>;
  /** Set once the head has been read. */
  run?: RequestRun;
}

/** Silence after which an engine counts as hanging; at most half of `requestMsMax`, which would hide it otherwise. */
const silenceMsMax = 60_000;

/** How long a stop waits for the disk to take the records of requests that it broke off. */
const recordMsMax = 2_000;

/** How long a stop then waits for clients to read how their answers have ended. */
const readMsMax = 2_000;

/** Memory for all large bodies, from first byte to first output. Measured: 64 at once took 1.8 GB with 512 MB. */
const largeBodiesBytesMax = 320_000_000;

/** Reason of refusals that say nothing of the engine. */
const busy: NodeFault = "node-busy";

export class Ingress implements AsyncDisposable {
  readonly #parts: IngressParts;
  readonly #connections: EngineConnections;
  readonly #reader = new WorkReader();
  readonly #budget: ByteBudget;
  readonly #doubts: EngineDoubts;
  readonly #engineParts: EngineAccessParts;
  readonly #unread: UnreadAnswers;
  /** In the order of arrival. */
  readonly #running = new TransientMap<number, RunningRequest>();
  #arrived = 0;
  #hasGivenUp = false;
  #isStopping = false;

  constructor(parts: IngressParts) {
    this.#parts = parts;
    this.#unread = parts.unread ?? new UnreadAnswers();
    this.#budget = new ByteBudget(largeBodiesBytesMax, bodyBytesMax, parts.clock, busy);
    this.#doubts = new EngineDoubts(parts.clock);
    this.#connections = new EngineConnections(parts.clock, parts.life, Math.min(silenceMsMax, parts.requestMsMax / 2));
    const { dialects, events } = parts;
    this.#engineParts = { dialects, events, connections: this.#connections, doubts: this.#doubts };
  }

  /** Requests between their first header and their last byte, waiting ones included. */
  get running(): number {
    return this.#running.size;
  }

  /** Bytes of answers that their clients have not read yet. */
  get unreadBytes(): number {
    return this.#unread.bytes;
  }

  /** Those requests, the oldest first. */
  requests(): readonly NodeRequest[] {
    const waiting = this.#parts.admissions.waiting();
    return this.#running
      .values()
      .flatMap(({ run }) => (run ? [run.view(waiting)] : []))
      .take(nodeRequestsMax)
      .toArray();
  }

  /** Serves a stream of a data connection, and owns it. `record`: the fields of its HEAD. */
  readonly handle = (stream: FrameStream, record: readonly unknown[]): StreamSink => {
    const exchange = new Exchange(stream, this.#parts.clock);
    const id = ++this.#arrived;
    const running: RunningRequest = { exchange };
    this.#running.set(id, running);
    running.served = this.#serve(running, record).catch(async (error: unknown) => {
      this.#parts.events.requestBug(error);
      await exchange.fail(new ApiError("internal", "Internal error.")).catch(() => exchange.cut());
    });
    void running.served.then(() => {
      exchange.close();
      this.#running.delete(id);
    });
    return exchange;
  };

  /**
   * Refuses new requests, and resolves when running ones have ended. After `graceMs` they are made to end; 2 s later so
   * are answers whose record is not on disk, and after 2 s more those whose clients do not read how they have ended.
   */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    const { clock } = this.#parts;
    const deadline = clock.after(graceMs, () => this.#endAll());
    const recordDeadline = clock.after(graceMs + recordMsMax, () => this.#giveUp());
    const readDeadline = clock.after(graceMs + recordMsMax + readMsMax, () => this.#cutAll());
    await Promise.all(this.#running.values().map(async ({ served }) => served));
    deadline.cancel();
    recordDeadline.cancel();
    readDeadline.cancel();
    await Promise.all([this.#connections[Symbol.asyncDispose](), this.#reader[Symbol.asyncDispose]()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#endAll();
    await this.stop(0);
  }

  #endAll(): void {
    for (const { exchange } of this.#running.values()) exchange.endBy("stop");
  }

  #cutAll(): void {
    for (const { exchange } of this.#running.values()) exchange.cut();
  }

  async #serve(running: RunningRequest, headRecord: readonly unknown[]): Promise<void> {
    const head = readRequestHead(headRecord);
    const run = new RequestRun(head, new UsageMeter(head, this.#parts.outbox, this.#parts.clock));
    running.run = run;
    const { exchange } = running;
    exchange.countIn(this.#unread.open(head.billing.accountId), head.readsDone);
    let error: ApiError | undefined;
    try {
      const { counts, rest } = await this.#answer(exchange, run);
      await exchange.sent();
      if (!(await this.#isKept(run, run.meter.append("finished", counts)))) throw new Ended("stop");
      // Its router has settled an answer that its client has left meanwhile, and says no more of it.
      if (!hasLeft(exchange)) this.#parts.unsettled.finished(head.routerId, run.meter.record!);
      await exchange.complete(rest);
    } catch (thrown) {
      // An engine's fault stays the cause, even if the client leaves while `afterNews` waits.
      const cause = thrown instanceof EngineFault ? thrown : exchange.causeOf(thrown);
      error = await this.#breakOff(exchange, run, cause);
    }
    run.giveRoom();
    const { requestId, model, path } = head;
    const { slot, waitedMs = 0 } = run.admission ?? {};
    const { record, gaps } = run.meter;
    this.#parts.events.requestEnded({ requestId, model, path, slot, waitedMs, record, gaps, error: error?.kind });
  }

  /** Resolves with true when the record is on disk; with false when this agent stops and gives up waiting for that. */
  #isKept(run: RequestRun, appended: Promise<void>): Promise<boolean> {
    return new Promise((resolve, reject) => {
      run.giveUp = () => resolve(false);
      if (this.#hasGivenUp) run.giveUp();
      appended.then(() => resolve(true), reject);
    });
  }

  #giveUp(): void {
    this.#hasGivenUp = true;
    for (const { run } of this.#running.values()) run?.giveUp();
  }

  async #answer(exchange: Exchange, run: RequestRun): Promise<FinishedAnswer> {
    const { head, meter } = run;
    const { admissions, clock, outbox, requestMsMax } = this.#parts;
    exchange.limitTo(Math.min(head.remainingMs, requestMsMax));
    if (this.#isStopping) throw new ApiError("maintenance", "The node is being stopped.", { retryAfterSeconds: 1 });
    if (!outbox.admitting)
      throw new ApiError("overloaded", "The node cannot record usage.", { retryAfterSeconds: 5, reason: busy });
    const rules = this.#parts.rules(head.model);
    if (!rules) throw new ApiError("model_unavailable", "The model is not known here yet.", { retryAfterSeconds: 1 });
    await run.takeRoom(this.#budget, exchange.signal);
    const scope = { rules, dialects: admissions.dialectsOf(head.model) };
    const body = await exchange.readBody(head.bodyBytes);
    run.work = await this.#reader.read(head, scope, body, clock.now(), exchange.signal);
    exchange.signal.throwIfAborted();
    const { model, slot, routerId } = head;
    const { answers } = run.work;
    const account = head.billing.accountId;
    const { leftMs, signal } = exchange;
    run.asked = { model, account, slot, answers, leftMs, routerId, signal };
    const admission = await admissions.admit(run.asked);
    try {
      run.admission = admission;
      meter.onAdmitted();
      if (admission.waitedMs >= 1) exchange.hasWaited(admission);
      const answer = await run.work.run(engineAccess(admission, { exchange, run }, this.#engineParts));
      this.#doubts.served(admission.endpoint);
      run.generated(answer.counts);
      exchange.keep(answer.rest);
      this.#release(admission, exchange, answer.counts);
      return answer;
    } catch (error) {
      const cause = exchange.causeOf(error);
      if (!(cause instanceof EngineFault)) throw cause;
      if (cause.reason === "core died") admission.lose(cause.reason);
      else if (suspicious.includes(cause.reason)) admission.suspect(cause.reason);
      const fault = await afterNews(cause, exchange.signal, clock, this.#parts.newsMsMax ?? engineNewsMsMax);
      fault.isOfDoubtedEngine = this.#doubt(fault, admission, run);
      throw fault;
    } finally {
      if (!run.isGenerated) admission.release(run.soFar());
    }
  }

  /** Counts a fault after which the engine goes on. Returns whether the engine is doubted. */
  #doubt(fault: EngineFault, admission: Admission, run: RequestRun): boolean {
    const { reason } = fault;
    if (reason === "gone" || reason === "core died" || suspicious.includes(reason)) return false;
    const { endpoint, slot, engine } = admission;
    const { model, billing } = run.head;
    return this.#doubts.failed({
      ...{ endpoint, slot, model, account: billing.accountId },
      ...{ hadOutput: run.hasOutput, isProvokable: !fault.isOurs },
      probe: (signal) => this.#parts.dialects[engine.dialect].readiness(endpoint, model, signal),
      suspect: () => admission.suspect("failing"),
    });
  }

  /** The place is the engine's: it does not wait for the client, unless more is unread than may be. */
  #release(admission: Admission, exchange: Exchange, used: TokenCounts): void {
    const release = () => {
      admission.release(used);
      exchange.done();
    };
    const room = exchange.room();
    if (room) void room.then(release);
    else release();
  }

  /** Records what an incomplete answer costs, and tells the client. */
  async #breakOff(exchange: Exchange, run: RequestRun, cause: unknown): Promise<ApiError | undefined> {
    const outcome = unfinishedOutcome(cause, exchange.isAnswering);
    if (outcome) await this.#isKept(run, run.meter.append(outcome, run.soFar()));
    if (cause instanceof Ended && (cause.by === "client" || cause.by === "router")) {
      exchange.leave();
      return undefined;
    }
    const error = errorOf(run, cause, this.#parts.events);
    await exchange.fail(error);
    return error;
  }
}

function hasLeft({ signal }: Exchange): boolean {
  return signal.reason instanceof Ended && signal.reason.by === "client";
}

/** Faults of an engine that may be gone or hang. Others say little about the next request: `EngineDoubts` counts them. */
const suspicious: readonly EngineFaultReason[] = ["silent", "refused"];
