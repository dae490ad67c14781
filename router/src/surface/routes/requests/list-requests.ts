/** Handlers of the lists of past requests: an account's for its people, also as CSV, and all accounts' for operators. */
import { asId, uuidv7TimeMs, type KeyId, type RequestId, type UserId } from "@weiche/shared/ids.ts";
import { accountNamed, keyNamed, userNamed } from "../../../accounts/named.ts";
import { instantText } from "../../../db/database.ts";
import type { Session } from "../../../sign-in/sessions.ts";
import { germanDay } from "../../../subscriptions/billing-period.ts";
import { adviceOf } from "../../../usage/refusal-codes.ts";
import { namedRequests, type NamedRequest } from "../../../usage/requests/named-requests.ts";
import { requestLines } from "../../../usage/requests/request-csv.ts";
import { readRequests, type ListedRequest, type RequestFilter } from "../../../usage/requests/request-list.ts";
import { nameUsageFilter } from "../../../usage/usage-filter.ts";
import type { requestsContract } from "../../contract/requests.ts";
import type { Part } from "../../contract/route.ts";
import type { Handlers } from "../../server/add-routes.ts";
import { readInstant } from "../../server/query.ts";
import { exportCsv } from "../csv-answer.ts";
import type { HandlerDeps } from "../handler-deps.ts";
import { nodeMeant } from "../nodes.ts";

type ListContract = Pick<typeof requestsContract, "listRequests" | "exportRequests" | "listPast">;
type Asked = Part<ListContract["exportRequests"], "query">;

const limitDefault = 50;
const dayMs = 86_400_000;
/** Clocks of routers may differ by less than this. */
const aheadMs = 60_000;
/** A search that finds little ends after this time. The page then offers to continue it. */
const searchMs = 1_000;

export function listHandlers(deps: HandlerDeps): Handlers<ListContract> {
  const { database, clock, exports, fleet, requestDays: days } = deps;
  return {
    async listRequests({ session, query: { before, limit, ...asked } }) {
      const filter = filterOf(session, asked, deps);
      const { keyId, userId } = filter;
      const names = { by: [], keyId, userIds: session.user.role === "member" ? [session.user.id] : undefined };
      const [found, { key, user }] = await Promise.all([
        search(deps, filter, limit, before),
        nameUsageFilter(database, session.user.accountId, names, asked.userId === undefined ? undefined : userId),
      ]);
      return { ...found, items: found.items.map(viewOf), days, filter: { key, user } };
    },

    exportRequests(call) {
      const filter = filterOf(call.session, call.query, deps);
      const lines = (left: AbortSignal) => requestLines(database, filter, left);
      return exportCsv(call, clock, exports, { fileName: `requests-${germanDay(clock.now())}.csv`, lines });
    },

    async listPast({ query: { account, user, key, keyId, node, before, limit, ...asked } }) {
      const ofUser = user === undefined ? undefined : await userNamed(database, user);
      const accountId = account === undefined ? ofUser?.accountId : await accountNamed(database, account);
      const ofKey = key === undefined ? undefined : await keyNamed(database, key, { accountId, userId: ofUser?.id });
      const filter: RequestFilter = {
        ...spanOf(asked, deps),
        ...{
          accountId: accountId ?? ofKey?.accountId,
          userId: ofUser?.id,
          keyId: ofKey?.id ?? (keyId === undefined ? undefined : asId<KeyId>(keyId)),
        },
        node: node === undefined ? undefined : nodeMeant(node, fleet),
      };
      const found = await search(deps, filter, limit, before);
      const items = found.items.map((one) => ({ ...viewOf(one), account: one.account, node: one.node }));
      return { ...found, items, days };
    },
  };
}

/** Restricts members to their own requests. For a member, requests of others do not exist. */
function filterOf({ user }: Session, { keyId, userId, ...asked }: Asked, deps: HandlerDeps): RequestFilter {
  const span = spanOf(asked, deps);
  const isForeign = user.role === "member" && userId !== undefined && userId !== user.id;
  return {
    ...span,
    ...(isForeign && { toMs: span.fromMs }),
    accountId: user.accountId,
    userId: user.role === "member" ? user.id : userId === undefined ? undefined : asId<UserId>(userId),
    keyId: keyId === undefined ? undefined : asId<KeyId>(keyId),
  };
}

/** Reads the times, and keeps them within the days for which requests are listed. */
function spanOf({ from, to, ...asked }: Omit<Asked, "keyId" | "userId">, { clock, requestDays }: HandlerDeps) {
  const oldestMs = clock.now() - requestDays * dayMs;
  const latestMs = clock.now() + aheadMs;
  const kept = (ms: number) => Math.min(Math.max(ms, oldestMs), latestMs);
  return {
    ...asked,
    fromMs: kept(from === undefined ? oldestMs : readInstant(from, "from")),
    toMs: kept(to === undefined ? latestMs : readInstant(to, "to")),
  };
}

/** Reads steps until the page is full, the list ends or time is over. */
async function search(
  { database, clock }: HandlerDeps,
  filter: RequestFilter,
  limit: number = limitDefault,
  from?: string,
) {
  const endMs = clock.monotonicMs() + searchMs;
  const found: ListedRequest[] = [];
  let before = from;
  do {
    const step = await readRequests(database, filter, { limit: limit - found.length, before });
    found.push(...step.items);
    before = step.next;
  } while (before !== undefined && found.length < limit && clock.monotonicMs() < endMs);
  const searchedTo = instantText(before === undefined ? filter.fromMs : uuidv7TimeMs(before as RequestId));
  return { items: await namedRequests(database, found), next: before ?? null, searchedTo };
}

function viewOf(request: NamedRequest) {
  const { requestId, model, key, outcome, status, code, requests, promptTokens, completionTokens } = request;
  const { credits, firstTokenSeconds, seconds } = request;
  return {
    id: requestId,
    at: instantText(uuidv7TimeMs(requestId as RequestId)),
    ...{ model, key, outcome, status, code, requests, promptTokens, completionTokens },
    ...{ credits, firstTokenSeconds, seconds },
    advice: adviceOf(code ?? undefined) ?? null,
  };
}
