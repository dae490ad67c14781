/**
 * Serves requests: reads, has them admitted by a slot, answered by an engine and recorded, and closes them. Every
 * request gives its place back and ends in exactly one way, in `#serve` or in `#breakOff`.
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
import { engineAccess, type EngineAccessOptions } from "./engine-access.ts";
import { CutTexts } from "../answer/embeddings/cut-texts.ts";
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

interface IngressOptions {
  readonly admissions: Admissions;
  /** The model's rules from the router. Undefined until they have arrived. */
  readonly rules: (model: ModelId) => ModelRules | undefined;
  readonly outbox: UsageOutbox;
  readonly unsettled: Pick<UnsettledAnswers, "finished">;
  readonly dialects: Readonly<Record<DialectName, Dialect>>;
  readonly clock: Clock;
  readonly life: EngineLife;
  /** The time limit of a request. The remaining time that the router sends applies if it is shorter. */
  readonly requestMsMax: number;
  /** How long a request whose engine connection broke waits to learn whether the engine died. Defaults to 400. */
  readonly newsMsMax?: number;
  /** Counts the bytes that clients have not read yet. If undefined, a new counter is made. */
  readonly unread?: UnreadAnswers;
  readonly events: IngressEvents;
}

interface RunningRequest {
  readonly exchange: Exchange;
  /** Resolves when the request has ended. */
  served?: Promise<void>;
  /** Set once the head was read. */
  run?: RequestRun;
}

/**
 * The silence after which an engine counts as hanging. At most half of `requestMsMax`, because the time limit would
 * otherwise come first.
 */
const silenceMsMax = 60_000;

/** How long a stop waits until the records of ended requests are on disk. */
const recordMsMax = 2_000;

/** How long a stop then waits for clients to read how their answers ended. */
const readMsMax = 2_000;

/**
 * Memory for all large bodies, from first byte to first output. Measured: 64 at once took 1.8 GB with a limit of 512
 * MB.
 */
const largeBodiesBytesMax = 320_000_000;

/** The reason in refusals that are unrelated to the engine. */
const busy: NodeFault = "node-busy";

export class Ingress implements AsyncDisposable {
  readonly #options: IngressOptions;
  readonly #connections: EngineConnections;
  readonly #reader = new WorkReader();
  readonly #budget: ByteBudget;
  readonly #doubts: EngineDoubts;
  readonly #engineOptions: EngineAccessOptions;
  readonly #unread: UnreadAnswers;
  /** Running requests, in the order of arrival. */
  readonly #running = new TransientMap<number, RunningRequest>();
  #arrived = 0;
  #hasGivenUp = false;
  #isStopping = false;

  constructor(options: IngressOptions) {
    this.#options = options;
    this.#unread = options.unread ?? new UnreadAnswers();
    this.#budget = new ByteBudget(largeBodiesBytesMax, bodyBytesMax, options.clock, busy);
    this.#doubts = new EngineDoubts(options.clock);
    this.#connections = new EngineConnections(
      options.clock,
      options.life,
      Math.min(silenceMsMax, options.requestMsMax / 2),
    );
    const { dialects, events } = options;
    this.#engineOptions = {
      dialects,
      events,
      connections: this.#connections,
      cutTexts: new CutTexts(),
      doubts: this.#doubts,
    };
  }

  /** The number of requests between their first header and their last byte, including waiting ones. */
  get running(): number {
    return this.#running.size;
  }

  /** Bytes of answers that clients have not read yet. */
  get unreadBytes(): number {
    return this.#unread.bytes;
  }

  /** The running requests, the oldest first. */
  requests(): readonly NodeRequest[] {
    const waiting = this.#options.admissions.waiting();
    return this.#running
      .values()
      .flatMap(({ run }) => (run ? [run.view(waiting)] : []))
      .take(nodeRequestsMax)
      .toArray();
  }

  /** Serves a stream of a data connection, and takes it over. `record`: the fields of its HEAD frame. */
  readonly handle = (stream: FrameStream, record: readonly unknown[]): StreamSink => {
    const exchange = new Exchange(stream, this.#options.clock);
    const id = ++this.#arrived;
    const running: RunningRequest = { exchange };
    this.#running.set(id, running);
    running.served = this.#serve(running, record).catch(async (error: unknown) => {
      this.#options.events.requestBug(error);
      await exchange.fail(new ApiError("internal", "Internal error.")).catch(() => exchange.cut());
    });
    void running.served.then(() => {
      exchange.close();
      this.#running.delete(id);
    });
    return exchange;
  };

  /**
   * Refuses new requests, and resolves when running ones have ended. After `graceMs` running requests are ended. After
   * 2 s more, answers without a record on disk end, and after another 2 s, answers that are not read.
   */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    const { clock } = this.#options;
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
    const run = new RequestRun(head, new UsageMeter(head, this.#options.outbox, this.#options.clock));
    running.run = run;
    const { exchange } = running;
    exchange.countIn(this.#unread.open(head.billing.accountId), head.readsDone);
    let error: ApiError | undefined;
    try {
      const { counts, rest } = await this.#answer(exchange, run);
      await exchange.sent();
      if (!(await this.#isKept(run, run.meter.append("finished", counts)))) throw new Ended("stop");
      // The router has already settled an answer whose client has left, and will not mention it again.
      if (!hasLeft(exchange)) this.#options.unsettled.finished(head.routerId, run.meter.record!);
      await exchange.complete(rest);
    } catch (thrown) {
      // An engine's fault remains the cause, even if the client leaves while `afterNews` waits.
      const cause = thrown instanceof EngineFault ? thrown : exchange.causeOf(thrown);
      error = await this.#breakOff(exchange, run, cause);
    }
    run.giveRoom();
    const { requestId, model, path } = head;
    const { slot, waitedMs = 0 } = run.admission ?? {};
    const { record, gaps } = run.meter;
    this.#options.events.requestEnded({ requestId, model, path, slot, waitedMs, record, gaps, error: error?.kind });
  }

  /** Resolves with true when the record is on disk, or with false when this agent stops and no longer waits. */
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
    const { admissions, clock, outbox, requestMsMax } = this.#options;
    exchange.limitTo(Math.min(head.remainingMs, requestMsMax));
    if (this.#isStopping) throw new ApiError("maintenance", "The node is being stopped.", { retryAfterSeconds: 1 });
    if (!outbox.admitting)
      throw new ApiError("overloaded", "The node cannot record usage.", { retryAfterSeconds: 5, reason: busy });
    const rules = this.#options.rules(head.model);
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
      const answer = await run.work.run(engineAccess(admission, { exchange, run }, this.#engineOptions));
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
      const fault = await afterNews(cause, exchange.signal, clock, this.#options.newsMsMax ?? engineNewsMsMax);
      fault.isOfDoubtedEngine = this.#doubt(fault, admission, run);
      throw fault;
    } finally {
      if (!run.isGenerated) admission.release(run.soFar());
    }
  }

  /** Counts a fault that leaves the engine running. Returns whether the engine is doubted. */
  #doubt(fault: EngineFault, admission: Admission, run: RequestRun): boolean {
    const { reason } = fault;
    if (reason === "gone" || reason === "core died" || suspicious.includes(reason)) return false;
    const { endpoint, slot, engine } = admission;
    const { model, billing } = run.head;
    return this.#doubts.failed({
      ...{ endpoint, slot, model, account: billing.accountId },
      ...{ hadOutput: run.hasOutput, isProvokable: !fault.isOurs },
      probe: (signal) => this.#options.dialects[engine.dialect].readiness(endpoint, model, signal),
      suspect: () => admission.suspect("failing"),
    });
  }

  /** Gives the place back. It does not wait for the client, unless too much is unread. */
  #release(admission: Admission, exchange: Exchange, used: TokenCounts): void {
    const release = () => {
      admission.release(used);
      exchange.done();
    };
    const room = exchange.room();
    if (room) void room.then(release);
    else release();
  }

  /** Records the cost of an incomplete answer and notifies the client. */
  async #breakOff(exchange: Exchange, run: RequestRun, cause: unknown): Promise<ApiError | undefined> {
    const outcome = unfinishedOutcome(cause, exchange.isAnswering);
    if (outcome) await this.#isKept(run, run.meter.append(outcome, run.soFar()));
    if (cause instanceof Ended && (cause.by === "client" || cause.by === "router")) {
      exchange.leave();
      return undefined;
    }
    const error = errorOf(run, cause, this.#options.events);
    await exchange.fail(error);
    return error;
  }
}

function hasLeft({ signal }: Exchange): boolean {
  return signal.reason instanceof Ended && signal.reason.by === "client";
}

/**
 * Faults of an engine that may be gone or hang. Others prove little about the next request, so `EngineDoubts` counts
 * them.
 */
const suspicious: readonly EngineFaultReason[] = ["silent", "refused"];
