/** The JSON API of the console. */
import type { ConsoleContract } from "../../../src/surface/contract/contract.ts";
import type { Reply } from "../../../src/surface/contract/route.ts";
import { createCalls } from "../api/calls.ts";
import { createHooks } from "../api/hooks.ts";

export const calls = createCalls<ConsoleContract>({
  openConsole: "POST /console/session",
  showConsole: "GET /console/session",
  closeConsole: "DELETE /console/session",
  watchConsole: "GET /console/events",
  setMaintenance: "POST /nodes/maintenance",
  prewarm: "POST /prewarm",
  listRunning: "GET /requests/running",
  showAccount: "GET /accounts/:id",
  blockAccount: "POST /accounts/:id/block",
  unblockAccount: "POST /accounts/:id/unblock",
  listUsers: "GET /users",
  blockUser: "POST /users/:id/block",
  unblockUser: "POST /users/:id/unblock",
});

export const { useRead, useChange } = createHooks<ConsoleContract>(calls);

export type ConsoleSession = Reply<ConsoleContract["showConsole"]>;
export type ListedUser = Reply<ConsoleContract["listUsers"]>["items"][number];

/** The operator names the account in the query. */
export function usersOf(account: string): { readonly query: { readonly sort: "email" } } {
  const query = { account, sort: "email" } as const;
  return { query };
}
