/** The audit log: each action in the account with its actor. */
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
  actor: Type.Optional(Type.String({ maxLength: 40, description: "The id of a user, or `operator`." })),
  object: Type.Optional(Type.String({ maxLength: 40, description: "The id of a user, a key or the account." })),
  action: Type.Optional(Type.String({ maxLength: 60, description: "Such as key.revoke." })),
  from: Type.Optional(instant),
  to: Type.Optional(Type.String({ ...instant, description: "Not included." })),
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
  result: Type.String({ description: "done, or refused and why." }),
  details: Type.Record(Type.String(), Type.Unknown()),
});

export const auditContract = {
  listAudit: {
    summary: "The audit log, the youngest entry first. `to` keeps its pages still while entries are added",
    ...ofAccountForAdministrators,
    query: pageQuery(sort, filter),
    operator: {
      query: pageQuery(sort, {
        ...filter,
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
        before: Type.Optional(Type.Integer({ minimum: 1, description: "Entries with a lower number." })),
      }),
    },
    reply: pageOf(entry, {
      isCut: Type.Boolean({
        description:
          "Only the newest 10,000 entries of the time that was asked for were searched; there are older ones.",
      }),
    }),
  },
  exportAudit: {
    summary: "The same, all of it, as CSV, the youngest entry first",
    may: administrators,
    query: object({ search: Type.Optional(Type.String({ maxLength: 200 })), ...filter }),
    stream: "text/csv",
  },
  verifyAudit: {
    summary: "Whether an entry was changed, taken out or cut off, in one account's chain or in all",
    may: ["operator"],
    body: object({ account: Type.Optional(accountName) }),
    reply: object({
      chains: count,
      entries: count,
      broken: Type.Array(object({ accountId: id, number: count, why: Type.Enum(["changed", "missing", "cut off"]) })),
    }),
  },
} as const satisfies RouteTable;
