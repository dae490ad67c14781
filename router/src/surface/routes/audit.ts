/** Handlers of an account's audit log. */
import type { AccountId } from "@weiche/shared/ids.ts";
import { accountNamed } from "../../accounts/named.ts";
import { germanDay } from "../../subscriptions/billing-period.ts";
import { verifyAudit } from "../../rights/audit.ts";
import { auditPage, auditStep, type AuditFilter, type NamedEntry } from "../../rights/audit-page.ts";
import { csvLine } from "../../usage/csv.ts";
import type { Database } from "../../db/database.ts";
import { exportCsv } from "./csv-answer.ts";
import { readInstant } from "../server/query.ts";
import type { Handlers } from "../server/add-routes.ts";
import type { auditContract } from "../contract/audit.ts";
import { pageWindow } from "../contract/route.ts";
import type { HandlerDeps } from "./handler-deps.ts";

/** The entries that one step of an export reads. A search that finds little thus takes many short statements. */
const exportStep = 1_000;
/** Limits a person's search to the newest entries, so that a log of millions costs no more than one of thousands. */
const entriesSearched = 10_000;

export function auditHandlers({ database, clock, exports }: HandlerDeps): Handlers<typeof auditContract> {
  return {
    async listAudit({ accountId, query, session }) {
      const { page, pageSize, ...window } = pageWindow(query);
      const { sort = "at", order = sort === "at" ? "desc" : "asc", ...filter } = query;
      const searchedMax = session ? entriesSearched : null;
      const found = await auditPage(database, accountId, checked(filter), { ...window, sort, order }, searchedMax);
      return { ...found, page, pageSize };
    },
    exportAudit: (call) => {
      const filter = checked(call.query);
      const lines = (left: AbortSignal) => auditLines(database, call.session.user.accountId, filter, left);
      return exportCsv(call, clock, exports, { fileName: `audit-${germanDay(clock.now())}.csv`, lines });
    },
    verifyAudit: async ({ body: { account } }) =>
      verifyAudit(database, account === undefined ? undefined : await accountNamed(database, account)),
  };
}

function checked(filter: AuditFilter): AuditFilter {
  for (const name of ["from", "to"] as const) if (filter[name] !== undefined) readInstant(filter[name], name);
  return filter;
}

const columns: Readonly<Record<string, (entry: NamedEntry) => string | number | null>> = {
  number: ({ number }) => number,
  at: ({ at }) => at,
  actor: ({ actor }) => actor,
  actorName: ({ actorName }) => actorName,
  source: ({ source }) => source,
  action: ({ action }) => action,
  objectKind: ({ object }) => object.kind,
  objectId: ({ object }) => object.id,
  objectName: ({ object }) => object.name,
  result: ({ result }) => result,
  details: ({ details }) => JSON.stringify(details),
};

async function* auditLines(database: Database, accountId: AccountId, filter: AuditFilter, left: AbortSignal) {
  yield csvLine(Object.keys(columns));
  let before: number | undefined;
  do {
    left.throwIfAborted();
    const { entries, next } = await auditStep(database, accountId, { ...filter, before }, exportStep);
    if (entries.length > 0)
      yield entries.map((entry) => csvLine(Object.values(columns).map((cell) => cell(entry)))).join("");
    before = next;
  } while (before !== undefined);
}
