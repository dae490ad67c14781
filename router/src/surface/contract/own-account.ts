/** Routes of the own account, for its Owners. */
import { Type } from "typebox";
import { deletion } from "./accounts.ts";
import { id, instant, name, object, proof, type RouteTable } from "./route.ts";

const account = object({ id, name: Type.String(), createdAt: instant, ...deletion });

export const ownAccountContract = {
  showOwnAccount: {
    summary: "Show the account's name, and what closing it would remove and keep",
    may: ["owner"],
    reply: account,
  },
  renameOwnAccount: {
    summary: "Rename the account",
    may: ["owner"],
    body: object({ name }),
    reply: account,
  },
  closeAccount: {
    summary: "Delete the account permanently, with the own password and the account's name as confirmation",
    may: ["owner"],
    body: object({ name, ...proof }),
  },
} as const satisfies RouteTable;
