/** Answers requests for chats, completions and embeddings by a node. Each line of `generateAs` may refuse. */
import type { IncomingHttpHeaders } from "node:http";
import type { Catalogue } from "@weiche/shared/catalogue.ts";
import { checkAnswers, checkModelRules } from "@weiche/shared/convention/model-rules.ts";
import { requestTokensMax } from "@weiche/shared/convention/prompt-tokens.ts";
import { factorAt } from "@weiche/shared/catalogue.ts";
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { Millicredits } from "@weiche/shared/credits.ts";
import { ApiError, invalid } from "@weiche/shared/errors.ts";
import type { NodeId } from "@weiche/shared/ids.ts";
import type { NodePath } from "@weiche/shared/node-protocol.ts";
import type { Caller, KeyCache } from "../callers/caller.ts";
import { attemptsMax, clearerRefusal, endOfAnswer, endOfError, endOfRefusal, failed } from "./attempt-end.ts";
import { mayAskAnother, untold, type AttemptEnded } from "./attempt-end.ts";
import type { RefusalReason } from "../usage/refusal-codes.ts";
import type { Limiter } from "../limits/limiter.ts";
import type { Attempted } from "../nodes/outcomes/outcomes.ts";
import type { Placed, Placement, PlacementRequest, Unplaced } from "../nodes/placement.ts";
import { NodeLost, type Upstream, type UpstreamRequest } from "../nodes/upstream.ts";
import { authenticate, quotaError, type Authenticated } from "./authenticate.ts";
import type { ByteBudget } from "@weiche/shared/http/byte-budget.ts";
import type { BodyReaders } from "./body/body-readers.ts";
import type { EngineDeaths, SuspectBody } from "./engine-deaths.ts";
import type { Exchange, TriedNode } from "./exchange.ts";
import { HeldBody } from "./body/held-body.ts";
import { findModel } from "./model-access.ts";
import { NodeRefusal, readNodeRefusal } from "./node-refusal.ts";
import type { BodyTimes } from "./body/body-receiver.ts";
import { readBody } from "./body/read-body.ts";
import { refusalCodeOf } from "./refuse.ts";
import { relay } from "./relay.ts";
import { decideAfter, decideAfterRefusal, decideAtEnd, type AttemptVerdicts } from "./sent-attempts.ts";

/** Chooses a node and slot. `exclude`: nodes that were already tried. */
type Place = (request: PlacementRequest, exclude: ReadonlySet<NodeId>) => Placement;

export interface GenerateDeps {
  readonly keys: KeyCache;
  readonly limiter: Limiter;
  readonly catalogue: () => Catalogue;
  readonly place: Place;
  /** Called before each attempt. Placement learns from its end. */
  readonly began: (at: Attempted) => AttemptEnded;
  readonly upstream: Upstream;
  readonly verdicts: AttemptVerdicts;
  readonly engineDeaths: EngineDeaths;
  readonly readers: BodyReaders;
  readonly budget: ByteBudget;
  readonly clock: Clock;
  /** Time limit of a request. The node ends the request then, the router `graceMs` later. */
  readonly requestMsMax: number;
  readonly times: BodyTimes & { readonly stallMsMax: number; readonly graceMs: number };
}

const maintenanceRetrySeconds = 5;
/** The maximum retry time while no node is available. */
const awayRetrySecondsMax = 30;

export async function generate(exchange: Exchange, path: NodePath, deps: GenerateDeps): Promise<void> {
  await generateAs(exchange, await authenticate(exchange, deps.keys), path, deps);
}

/** A request that did not arrive on the public listener. */
export interface InsideRequest {
  /** Called before each attempt is sent, with its node, its slot and the model's factor. */
  readonly onPlaced: (at: Placed, factor: Millicredits) => void;
}

/** Answers an authenticated caller. */
export async function generateAs(
  exchange: Exchange,
  { caller, quotaExhausted }: Authenticated,
  path: NodePath,
  deps: GenerateDeps,
  inside?: InsideRequest,
): Promise<void> {
  if (quotaExhausted) throw quotaError();
  await enterLimits(exchange, caller, deps.limiter);
  limitDuration(exchange, deps);
  const body = new HeldBody(deps.budget, exchange, caller.accountId);
  await readBody(exchange, body, deps.times, deps.clock);
  const facts = await deps.readers.read(path, body, exchange.signal);
  if (inside && !facts.isStreamed) throw invalid("stream", "must be true in the playground");
  const entry = findModel(facts.model, caller, deps.catalogue());
  exchange.model = entry.id;
  checkModelRules(facts, entry);
  checkAnswers(facts, entry);
  const { accountId, userId, keyId } = caller;
  const suspect = { accountId, model: entry.id, digest: facts.digest };
  deps.engineDeaths.refuseBarred(suspect);
  const request = {
    ...{ path, requestId: exchange.id, model: entry.id },
    tokensMax: requestTokensMax(entry, facts, body.bytes!.length),
    // The time of acceptance determines the factor and the billing period.
    billing: { accountId, userId, keyId, factor: factorAt(entry, exchange.acceptedAtMs) },
    // An embedding request takes one place, because its texts are processed one after the other.
    answers: facts.embeds ? 1 : facts.answers,
  };
  const { conversation } = facts;
  const affinityKey = conversation === undefined ? undefined : `${accountId} ${entry.id} ${conversation}`;
  await answer(exchange, request, { body, suspect, affinityKey, onPlaced: inside?.onPlaced }, deps);
}

/** Takes a place in the account's limits until the exchange is settled. */
async function enterLimits(exchange: Exchange, caller: Caller, limiter: Limiter): Promise<void> {
  const { accountId, requestsPerMinute, parallelRequests } = caller;
  const limits = { perMinute: requestsPerMinute, parallel: parallelRequests };
  const decision = await limiter.enter(accountId, exchange.id, limits, isRetry(exchange.request.headers));
  if (decision.admitted) return exchange.onSettled(() => limiter.leave(accountId, exchange.id));
  const message =
    decision.limit === "minute"
      ? `The limit of ${requestsPerMinute} requests per minute of this account is reached.`
      : `The limit of ${parallelRequests} parallel requests of this account is reached.`;
  const reason: RefusalReason = `rate_limit_${decision.limit}`;
  throw new ApiError("rate_limit_exceeded", message, { retryAfterSeconds: decision.retryAfterMs / 1_000, reason });
}

/** Official clients send how often they have repeated a request. */
function isRetry({ "x-stainless-retry-count": count }: IncomingHttpHeaders): boolean {
  return Number(count) > 0;
}

function limitDuration(exchange: Exchange, { clock, requestMsMax, times }: GenerateDeps): void {
  const timer = clock.after(requestMsMax + times.graceMs, () => {
    exchange.abort(new ApiError("timeout", `The request took longer than ${requestMsMax / 1_000} seconds.`));
  });
  exchange.onSettled(() => timer.cancel());
}

/** Asks nodes until one answers. `request`: the fields that are the same for every node. */
async function answer(
  exchange: Exchange,
  request: Omit<UpstreamRequest, "attempt" | "slot" | "remainingMs" | "body">,
  { body, suspect, affinityKey, onPlaced }: Asked,
  deps: GenerateDeps,
): Promise<void> {
  const { model, billing } = request;
  const excluded = new Set<NodeId>();
  let refusal: NodeRefusal | undefined;
  /** Attempts that an engine refused. They count as failed once another node serves the request. Later ends are ignored. */
  const refused: AttemptEnded[] = [];
  exchange.onSettled(() => {
    for (const ended of refused) ended(exchange.outcome === "answered" ? failed : untold);
  });
  while (exchange.attempts < attemptsMax) {
    const asked = { model, affinityKey };
    const other = deps.place(asked, excluded);
    // The node of an engine that is away holds the request for the engine's restart, if no other node can serve it.
    const placed = "refused" in other && refusal?.isEngineAway ? deps.place(asked, new Set()) : other;
    if ("refused" in placed) throw refusal ?? unplaced(placed);
    onPlaced?.(placed, billing.factor);
    excluded.add(placed.node);
    const ended = deps.began({ ...placed, model, account: billing.accountId, bodyBytes: body.bytes!.length });
    try {
      const parts = { placed, body, suspect, ended };
      const next = await attempt(exchange, { ...request, slot: placed.slot }, parts, deps);
      if (!next) return;
      refused.push(ended);
      refusal = clearerRefusal(refusal, next);
    } catch (error) {
      ended(endOfError(error, exchange));
      if (error instanceof NodeRefusal) throw clearerRefusal(refusal, error);
      if (!(error instanceof NodeLost)) throw error;
    }
    exchange.signal.throwIfAborted();
  }
  throw refusal ?? unplaced({ refused: "no_node_available" });
}

interface Asked extends Pick<PlacementRequest, "affinityKey">, Partial<Pick<InsideRequest, "onPlaced">> {
  readonly body: HeldBody;
  readonly suspect: SuspectBody;
}

interface AttemptParts extends Pick<Asked, "body" | "suspect"> {
  readonly placed: Placed;
  readonly ended: AttemptEnded;
}

/**
 * Sends the request to one node. Resolves with undefined once its answer has begun, or with a refusal after which another
 * node may be asked. Rejects with `NodeLost`, after which another node may be asked too, or with the error for the client.
 */
async function attempt(
  exchange: Exchange,
  request: Omit<UpstreamRequest, "attempt" | "remainingMs" | "body">,
  { placed, body, suspect, ended }: AttemptParts,
  { clock, requestMsMax, times, verdicts, engineDeaths, upstream }: GenerateDeps,
): Promise<NodeRefusal | undefined> {
  const { requestId, model, billing } = request;
  const sentMs = clock.monotonicMs() - exchange.startedAtMs;
  const tried: TriedNode = { ...placed, sentMs };
  const attempt = exchange.tried.push(tried);
  const sent = { requestId, attempt, node: placed.node, model, ...billing };
  try {
    const remainingMs = Math.max(0, requestMsMax - sentMs);
    const asked = { ...request, attempt, remainingMs, body: body.bytes! };
    const reply = await upstream.send(placed.node, asked, exchange.signal);
    tried.repliedMs = clock.monotonicMs() - exchange.startedAtMs;
    tried.waited = reply.waited;
    tried.estimatedMs = reply.estimatedMs;
    if (reply.status === 200) {
      tried.result = "answered";
      engineDeaths.watch(suspect, exchange, reply.body);
      exchange.onSettled(() => ended(endOfAnswer(exchange, reply, sentMs, request.path)));
      await relay(exchange, reply, clock, times.stallMsMax);
      ended({ outcome: "answered" });
      decideAtEnd(sent, reply.body, exchange, verdicts);
      // After the first byte no other node can be asked, so the body is no longer needed.
      body.drop();
      return undefined;
    }
    const refusal = await readNodeRefusal(reply, exchange.signal);
    decideAfterRefusal(refusal, sent, verdicts);
    tried.result = refusalCodeOf(refusal);
    // Only the answer of another node shows whether the request or the engine is the cause.
    if (!refusal.isOfEngine) ended(endOfRefusal(refusal, reply.body));
    if (reply.body.engineDeath) engineDeaths.died(suspect, reply.body.engineDeath);
    if (mayAskAnother(refusal, reply.body)) return refusal;
    throw refusal;
  } catch (error) {
    decideAfter(error, sent, exchange, verdicts);
    tried.repliedMs ??= clock.monotonicMs() - exchange.startedAtMs;
    if (error instanceof NodeLost) tried.result = "lost";
    throw error;
  }
}

/** Returns the error without a node. A node that was away for some time will probably stay away as long again (decision 43). */
function unplaced({ refused, awayMs = 0 }: Unplaced): ApiError {
  if (refused === "maintenance")
    return new ApiError("maintenance", "The model is in maintenance.", { retryAfterSeconds: maintenanceRetrySeconds });
  const retryAfterSeconds = Math.min(awayMs / 1_000, awayRetrySecondsMax);
  return new ApiError("no_node_available", "No server for this model is available right now.", { retryAfterSeconds });
}
