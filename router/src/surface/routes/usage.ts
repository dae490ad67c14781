/** Handlers of an account's credits, usage (rows and CSV) and refusals, and of the evaluation of all accounts. */
import { asId, type KeyId, type UserId } from "@weiche/shared/ids.ts";
import type { Session } from "../../sign-in/sessions.ts";
import { viewCredits } from "../../usage/credits-view.ts";
import { reportRefusals } from "../../usage/refusal-report.ts";
import { openUsageCsv } from "../../usage/usage-csv.ts";
import { listSetAside } from "../../usage/records-set-aside.ts";
import { readUsageTrace } from "../../simulate/loads/usage-trace.ts";
import { nameUsageFilter } from "../../usage/usage-filter.ts";
import { readUsageTable, type UsagePart, type UsageTableWish } from "../../usage/usage-table.ts";
import { startOfGermanDay } from "../../subscriptions/billing-period.ts";
import { isDay } from "../../db/calendar-text.ts";
import { exportCsv } from "./csv-answer.ts";
import { RequestError } from "../../rights/request-error.ts";
import { malformed } from "../server/error-answers.ts";
import type { Handlers } from "../server/add-routes.ts";
import { pageWindow, type Part } from "../contract/route.ts";
import type { usageContract } from "../contract/usage.ts";
import type { HandlerDeps } from "./handler-deps.ts";
import { nodeMeant } from "./nodes.ts";

/** How far a trace goes back if no first day is given. */
const tracedMs = 7 * 86_400_000;

export function usageHandlers(deps: HandlerDeps): Handlers<typeof usageContract> {
  const { database, limiter, clock, exports, evaluator, fleet } = deps;
  return {
    showCredits: ({ session, accountId }) => viewCredits(database, limiter, clock, accountId, session?.user.id),

    async showUsage({ session, accountId, query }) {
      const { page, pageSize, ...window } = pageWindow(query);
      const wish = wishOf(session, query);
      const userId = query.userId === undefined ? undefined : asId<UserId>(query.userId);
      const [{ rows, ...table }, filter] = await Promise.all([
        readUsageTable(database, clock, accountId, wish, window),
        nameUsageFilter(database, accountId, wish, userId),
      ]);
      return { ...table, filter, items: rows, page, pageSize };
    },

    async exportUsage(call) {
      const { session, query } = call;
      const file = await openUsageCsv(database, clock, session.user.accountId, wishOf(session, query));
      await exportCsv(call, clock, exports, file);
    },

    showRefusals({ session, accountId, query }) {
      checkDays(query);
      const userId = session?.user.role === "member" ? session.user.id : undefined;
      return reportRefusals(database.pool, clock, accountId, { ...query, userId });
    },

    evaluateCredits: () => evaluator.evaluate(),
    listSetAside: ({ query: { node, limit = 100 } }) =>
      listSetAside(database.pool, { node: node === undefined ? undefined : nodeMeant(node, fleet), limit }),

    traceUsage({ query }) {
      checkDays(query);
      const { from, to, after } = query;
      const toMs = to === undefined ? clock.now() : startOfGermanDay(to, 1);
      const fromMs = from === undefined ? toMs - tracedMs : startOfGermanDay(from);
      return readUsageTrace(database.pool, { fromMs, toMs, after });
    },
  };
}

/** Restricts members to their own usage. For a member, usage of others does not exist. */
function wishOf(session: Session | undefined, query: Part<typeof usageContract.exportUsage, "query">): UsageTableWish {
  checkDays(query);
  const { by = "day", keyId, userId, ...filters } = query;
  const asked = userId === undefined ? undefined : [asId<UserId>(userId)];
  const own = session?.user.role === "member" ? session.user.id : undefined;
  return {
    ...filters,
    by: [...new Set(by.split(",") as UsagePart[])],
    keyId: keyId === undefined ? undefined : asId<KeyId>(keyId),
    userIds: own === undefined ? asked : (asked ?? [own]).filter((id) => id === own),
  };
}

/** Refuses days that do not exist, and a span that ends before it begins. */
export function checkDays({ from, to }: { readonly from?: string; readonly to?: string }): void {
  for (const [param, text] of Object.entries({ from, to }))
    if (text !== undefined && !isDay(text)) throw malformed(param, `there is no day ${text}`);
  if (from !== undefined && to !== undefined && from > to)
    throw new RequestError("invalid", `${from} is after ${to}`, { details: [{ param: "to", code: "too_small" }] });
}
