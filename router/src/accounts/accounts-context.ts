/** What the parts of the business are made from. */
import type { Clock } from "@weiche/shared/clock.ts";
import type { Database } from "../db/database.ts";

export interface AccountsContext {
  readonly database: Database;
  readonly clock: Clock;
  /** Where invitations lead. */
  readonly portalUrl: string;
}
