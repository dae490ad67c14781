/** How an account stands, its usage as rows and as CSV, and its refusals. */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { asId, type KeyId, type UserId } from "@weiche/shared/ids.ts";
import type { Session } from "../../sign-in/session.ts";
import { viewCredits } from "../../usage/credits-view.ts";
import { reportRefusals } from "../../usage/refusal-report.ts";
import { openUsageCsv } from "../../usage/usage-csv.ts";
import type { UsagePart } from "../../usage/usage-parts.ts";
import { readUsageTable, type UsageTableWish } from "../../usage/usage-table.ts";
import { isDay } from "../../db/calendar-text.ts";
import type { Database } from "../../db/database.ts";
import type { Limiter } from "../../limits/limiter.ts";
import { exportCsv } from "../api-csv.ts";
import { PortalError } from "../api-error.ts";
import type { Handlers } from "../api-routes.ts";
import type { ExportPlaces } from "../export-places.ts";
import { pageWindow, type Part } from "../contract/route.ts";
import type { usageContract } from "../contract/usage.ts";

export interface UsageRouteDeps {
  readonly database: Database;
  readonly limiter: Pick<Limiter, "use">;
  readonly clock: Clock;
  readonly exports: ExportPlaces;
}

export function usageHandlers({ database, limiter, clock, exports }: UsageRouteDeps): Handlers<typeof usageContract> {
  return {
    showCredits: ({ session: { user } }) => viewCredits(database, limiter, clock, user.accountId, user.id),

    async showUsage({ session, query }) {
      const { page, pageSize, ...window } = pageWindow(query);
      const { rows, ...table } = await readUsageTable(
        database,
        clock,
        session.user.accountId,
        wishOf(session, query),
        window,
      );
      return { ...table, items: rows, page, pageSize };
    },

    async exportUsage(call) {
      const { session, query } = call;
      const file = await openUsageCsv(database, clock, session.user.accountId, wishOf(session, query));
      await exportCsv(call, clock, exports, file);
    },

    showRefusals({ session: { user }, query }) {
      checkDays(query);
      const own = user.role === "member" ? { userId: user.id } : {};
      return reportRefusals(database.pool, clock, user.accountId, { ...query, ...own });
    },
  };
}

/** To a member the usage of others does not exist. */
function wishOf({ user }: Session, query: Part<(typeof usageContract)["exportUsage"], "query">): UsageTableWish {
  checkDays(query);
  const { by = "day", keyId, userId, ...more } = query;
  const asked = userId === undefined ? undefined : [asId<UserId>(userId)];
  const seen = user.role === "member" ? (asked ?? [user.id]).filter((id) => id === user.id) : asked;
  const { page: _page, pageSize: _size, ...filters } = more as typeof more & { page?: number; pageSize?: number };
  return {
    ...filters,
    by: [...new Set(by.split(",") as UsagePart[])],
    ...(keyId === undefined ? {} : { keyId: asId<KeyId>(keyId) }),
    ...(seen === undefined ? {} : { userIds: seen }),
  };
}

function checkDays({ from, to }: { readonly from?: string; readonly to?: string }): void {
  for (const [param, text] of Object.entries({ from, to })) if (text !== undefined && !isDay(text)) throw wrong(param);
  if (from !== undefined && to !== undefined && from > to) throw wrong("to", "too_small");
}

function wrong(param: string, code = "malformed"): PortalError {
  return new PortalError("invalid", `Not accepted: ${param}.`, { details: [{ param, code }] });
}
