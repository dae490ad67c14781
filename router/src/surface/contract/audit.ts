/** Routes of the audit log, which records each action in an account with its actor. */
import { Type } from "typebox";
import {
  accountName,
  administrators,
  count,
  id,
  instant,
  object,
  ofAccountForAdministrators,
  orNull,
  pageOf,
  pageQuery,
  type RouteTable,
} from "./route.ts";

const filter = {
  actor: Type.Optional(Type.String({ maxLength: 40, description: "A user's id, or `operator`." })),
  object: Type.Optional(Type.String({ maxLength: 40, description: "The id of a user, a key or the account." })),
  action: Type.Optional(Type.String({ maxLength: 60, description: "Such as key.revoke." })),
  from: Type.Optional(instant),
  to: Type.Optional(Type.String({ ...instant, description: "The end, exclusive." })),
};

const sort = Type.Enum(["at", "actor", "action", "object", "result"]);

const entry = object({
  number: count,
  at: instant,
  actor: Type.String(),
  actorName: orNull(Type.String()),
  source: Type.String({ description: "A network address, or the operators' socket." }),
  action: Type.String(),
  object: object({ kind: Type.String(), id: Type.String(), name: orNull(Type.String()) }),
  result: Type.String({ description: "`done`, or `refused` with the reason." }),
  details: Type.Record(Type.String(), Type.Unknown()),
});

export const auditContract = {
  listAudit: {
    summary: "List the audit log, newest first. With `to` set, new entries do not shift the pages",
    ...ofAccountForAdministrators,
    query: pageQuery(sort, filter),
    operator: {
      query: pageQuery(sort, {
        ...filter,
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
        before: Type.Optional(Type.Integer({ minimum: 1, description: "Only entries with a lower number." })),
      }),
    },
    reply: pageOf(entry, {
      isCut: Type.Boolean({
        description: "Whether older entries were not searched: the search covers the newest 10,000 of the given time.",
      }),
    }),
  },
  exportAudit: {
    summary: "Export the whole audit log as CSV, newest first",
    may: administrators,
    query: object({ search: Type.Optional(Type.String({ maxLength: 200 })), ...filter }),
    stream: "text/csv",
  },
  verifyAudit: {
    summary: "Verify that no entries were changed or removed, in one account's chain or in all",
    may: ["operator"],
    body: object({ account: Type.Optional(accountName) }),
    reply: object({
      chains: count,
      entries: count,
      broken: Type.Array(object({ accountId: id, number: count, why: Type.Enum(["changed", "missing", "cut off"]) })),
    }),
  },
} as const satisfies RouteTable;
