/** The JSON API of the console. */
import { addresses } from "../../../src/surface/contract/addresses.ts";
import type { ConsoleContract } from "../../../src/surface/contract/contract.ts";
import type { Reply } from "../../../src/surface/contract/route.ts";
import { createCalls } from "../api/calls.ts";
import { createHooks } from "../api/hooks.ts";

export const calls = createCalls<ConsoleContract>(addresses);

export const { useRead, useChange } = createHooks<ConsoleContract>(calls);

export type ConsoleSession = Reply<ConsoleContract["showConsole"]>;
export type ListedUser = Reply<ConsoleContract["listUsers"]>["items"][number];

/** Adds the account, which the operator gives in the query. */
export function usersOf(account: string): { readonly query: { readonly sort: "email" } } {
  const query = { account, sort: "email" } as const;
  return { query };
}
