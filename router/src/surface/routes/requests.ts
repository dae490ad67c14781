/**
 * Handlers of requests for the operator. Running requests come from the API's exchanges and their nodes, the last ended
 * ones from the router's memory, and past ones of all routers from the database (`requests/`).
 */
import type { ModelId, NodeId } from "@weiche/shared/ids.ts";
import { uuidv7TimeMs } from "@weiche/shared/ids.ts";
import type { NodeRequest } from "@weiche/shared/node-protocol.ts";
import { accountNamed } from "../../accounts/named.ts";
import type { Exchange, FinishedRequest, TriedNode } from "../../api/exchange.ts";
import { requestsMax, type RecentRequests } from "../../api/recent-requests.ts";
import { instantText } from "../../db/database.ts";
import { serves } from "../../nodes/model-state.ts";
import { stateWords } from "../../nodes/node-view.ts";
import { RequestError } from "../../rights/request-error.ts";
import { adviceOf } from "../../usage/refusal-codes.ts";
import { readRequestUsage, type RequestUsage, type UnansweredRow } from "../../usage/request-usage.ts";
import type { requestsContract } from "../contract/requests.ts";
import type { Reply } from "../contract/route.ts";
import type { Handlers } from "../server/add-routes.ts";
import type { HandlerDeps } from "./handler-deps.ts";
import { failuresOf, nodeMeant } from "./nodes.ts";
import { listHandlers } from "./requests/list-requests.ts";

type Running = Reply<typeof requestsContract.listRunning>["items"][number];
type Ended = Reply<typeof requestsContract.listEnded>["items"][number];

const limitDefault = 100;
/** Maximum numbers of models and of accounts that are counted separately. */
const countedMax = 50;
const candidatesMax = 10;

export function requestsHandlers(deps: HandlerDeps): Handlers<typeof requestsContract> {
  const { requests, database, fleet } = deps;
  const meant = async ({ account, node, model }: Wish): Promise<Wish> => ({
    account: account === undefined ? undefined : await accountNamed(database, account),
    node: node === undefined ? undefined : nodeMeant(node, fleet),
    model,
  });
  return {
    ...listHandlers(deps),
    async listRunning({ query: { limit = limitDefault, ...given } }) {
      const wish = await meant(given);
      const matching = requests.running().filter((exchange) => matches(factsOf(exchange, deps), wish));
      const shown = matching.slice(0, limit);
      const { told, silentNodes } = await askNodes(shown, deps);
      return {
        total: matching.length,
        items: shown.filter(({ settled }) => !settled).map((exchange) => viewRunning(exchange, told, deps)),
        silentNodes,
      };
    },
    async listEnded({ query: { limit = limitDefault, outcome, ...given } }) {
      const wish = await meant(given);
      const isMeant = (facts: FinishedRequest) =>
        matches(facts, wish) && (outcome === undefined || facts.outcome === outcome);
      return { items: requests.recent.latest(isMeant, limit).map(viewEnded), memory: memoryOf(requests.recent) };
    },
    countRunning() {
      const running = requests.running();
      return {
        requests: running.length,
        models: most(running.map(({ model }) => model)).map(([model, count]) => ({ model, requests: count })),
        accounts: most(running.map(({ identity }) => identity?.accountId)).map(([accountId, count]) => ({
          ...{ accountId, requests: count },
        })),
      };
    },
    async explainRequest({ params: { id: asked } }) {
      const prefix = asked.replace(/^(chatcmpl|cmpl)-/, "").toLowerCase();
      const running = requests.running().filter(({ id }) => id.startsWith(prefix));
      const ended = requests.recent.find(prefix, candidatesMax + 1);
      const recorded = await readRequestUsage(database.pool, prefix).catch(() => undefined);
      const id = onlyOne(prefix, [
        ...running.map((exchange) => exchange.id as string),
        ...ended.map(({ requestId }) => requestId as string),
        ...(recorded?.usage ?? []).map(({ requestId }) => requestId),
        ...(recorded?.setAside ?? []).map(({ requestId }) => requestId),
        ...(recorded?.unanswered ?? []).map(({ requestId }) => requestId),
      ]);
      const { told } = await askNodes(running, deps);
      const isRunning = running[0] && !running[0].settled;
      const unanswered = recorded?.unanswered[0];
      return {
        id,
        acceptedAt: instantText(uuidv7TimeMs(id)),
        running: isRunning ? viewRunning(running[0]!, told, deps) : null,
        ended: !isRunning && ended[0] ? viewEnded(ended[0]) : null,
        usage: recorded ? (recorded.usage as readonly RequestUsage[]) : null,
        setAside: recorded?.setAside ?? [],
        unanswered: unanswered ? viewUnanswered(unanswered) : null,
        failures: failuresNow((isRunning ? running[0]!.model : ended[0]?.model) ?? undefined, fleet),
        memory: memoryOf(requests.recent),
      };
    },
  };
}

function failuresNow(model: ModelId | undefined, { details, nowMs }: HandlerDeps["fleet"]) {
  if (model === undefined) return [];
  return details().flatMap((detail) =>
    failuresOf(detail, model, nowMs()).map((one) => ({ node: detail.view.node, ...one })),
  );
}

/**
 * Returns the only id among the candidates, or `prefix` itself if it is a whole id. Otherwise throws `RequestError`.
 */
function onlyOne(prefix: string, candidates: readonly string[]): string {
  const ids = [...new Set(candidates)];
  if (ids.length > 1) {
    const shown = ids.slice(0, candidatesMax).join(", ");
    throw new RequestError(
      "conflict",
      `${prefix} is the beginning of several ids: ${shown}${ids.length > candidatesMax ? ", …" : ""}`,
    );
  }
  const id = ids[0] ?? (prefix.length === 36 ? prefix : undefined);
  if (id === undefined) throw new RequestError("not_found", `no known request has an id that begins with ${prefix}`);
  return id;
}

interface Wish {
  readonly account?: string | undefined;
  readonly model?: string | undefined;
  readonly node?: string | undefined;
}

function matches({ accountId, model, tried }: FinishedRequest, wish: Wish): boolean {
  return (
    (wish.account === undefined || accountId === wish.account) &&
    (wish.model === undefined || model === wish.model) &&
    (wish.node === undefined || tried.some(({ node }) => node === wish.node))
  );
}

/** Counts values. Returns pairs of a value and its count, the most frequent first. */
function most<Value extends string>(values: readonly (Value | undefined)[]): readonly (readonly [Value, number])[] {
  const counts = new Map<Value, number>();
  for (const value of values) if (value !== undefined) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].toSorted((a, b) => b[1] - a[1]).slice(0, countedMax);
}

/**
 * Asks the requests' nodes about them. Returns the answers by request id and attempt in `told`, and the nodes that did not
 * answer in `silentNodes`.
 */
async function askNodes(exchanges: readonly Exchange[], { requests }: HandlerDeps) {
  const nodes = new Set(exchanges.flatMap(({ tried }) => tried.at(-1)?.node ?? []));
  const told = new Map<string, NodeRequest>();
  const silentNodes: NodeId[] = [];
  await Promise.all(
    Array.from(nodes, async (node) => {
      const list = await requests.ofNode(node).catch(() => void silentNodes.push(node));
      for (const one of list ?? []) told.set(`${one.requestId} ${one.attempt}`, one);
    }),
  );
  return { told, silentNodes };
}

function factsOf(exchange: Exchange, { clock }: HandlerDeps): FinishedRequest {
  return exchange.finishedAt(clock.monotonicMs(), clock.now());
}

function viewRunning(exchange: Exchange, told: ReadonlyMap<string, NodeRequest>, deps: HandlerDeps): Running {
  const facts = factsOf(exchange, deps);
  const ofNode = told.get(`${exchange.id} ${exchange.attempts}`);
  const { completionTokens, generatingMs, position, estimateMs } = ofNode ?? {};
  const isWaiting = ofNode?.state === "waiting";
  return {
    ...viewFacts(facts),
    state:
      exchange.attempts === 0 ? "reading" : (ofNode?.state ?? (facts.firstByteMs === undefined ? "sent" : "answering")),
    ...(isWaiting && facts.model !== undefined && slotOf(facts.tried.at(-1)!, facts.model, deps)),
    position,
    estimateSeconds: estimateMs === undefined ? undefined : inSeconds(estimateMs),
    completionTokens,
    tokensPerSecond:
      generatingMs !== undefined && generatingMs > 0
        ? Math.round((10_000 * completionTokens!) / generatingMs) / 10
        : undefined,
  };
}

/** Returns whether a request waits for a place in its slot or for a switch, and the slot's state. */
function slotOf({ node, slot: name }: TriedNode, model: ModelId, { nodes }: HandlerDeps) {
  const slot = nodes()
    .find((view) => view.node === node)
    ?.slots.find((each) => each.name === name);
  if (!slot) return {};
  return {
    waitsFor: serves(slot, model) ? "place" : "switch",
    slotState: stateWords[slot.state],
  } as const;
}

function viewEnded(facts: FinishedRequest): Ended {
  const { outcome, status, errorCode, refusal } = facts;
  return { ...viewFacts(facts), outcome, status, code: errorCode, refusal, advice: adviceOf(refusal) };
}

function viewUnanswered({ requestId: _id, ...row }: UnansweredRow) {
  return { ...row, advice: adviceOf(row.code ?? undefined) ?? null };
}

function viewFacts({ requestId, endpoint, model, accountId, keyId, durationMs, ...facts }: FinishedRequest) {
  return {
    id: requestId as string,
    acceptedAt: instantText(uuidv7TimeMs(requestId)),
    ...{ endpoint, model, accountId, keyId },
    seconds: inSeconds(durationMs),
    firstByteSeconds: facts.firstByteMs === undefined ? undefined : inSeconds(facts.firstByteMs),
    bytesSent: facts.bytesSent,
    tried: facts.tried.map(viewTried),
  };
}

function viewTried({
  node,
  slot,
  sentMs,
  repliedMs,
  result,
  waited,
  estimatedMs,
}: TriedNode): Running["tried"][number] {
  const [waitedFor, waitedMs] = waited?.split(" ") ?? [];
  return {
    ...{ node, slot, sentAfterSeconds: inSeconds(sentMs) },
    repliedAfterSeconds: repliedMs === undefined ? undefined : inSeconds(repliedMs),
    result,
    waitedFor: waitedFor as "switch" | "place" | undefined,
    waitedSeconds: waitedMs === undefined ? undefined : inSeconds(Number(waitedMs)),
    estimatedSeconds: estimatedMs === undefined ? undefined : inSeconds(estimatedMs),
  };
}

function memoryOf(recent: RecentRequests) {
  const { requests, oldest } = recent.extent;
  return { requests, requestsMax, since: oldest ? instantText(oldest.endedAtMs) : null };
}

function inSeconds(ms: number): number {
  return Math.round(ms) / 1_000;
}
