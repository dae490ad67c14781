/** Who did what in the account. */
import { Type } from "typebox";
import { administrators, count, instant, object, orNull, type Routes } from "./route.ts";

const filter = {
  actor: Type.Optional(Type.String({ maxLength: 40, description: "The id of a user, or `operator`." })),
  object: Type.Optional(Type.String({ maxLength: 40, description: "The id of a user, a key or the account." })),
  action: Type.Optional(Type.String({ maxLength: 60, description: "Such as key.revoke." })),
  from: Type.Optional(instant),
  to: Type.Optional(Type.String({ ...instant, description: "Not included." })),
};

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
    method: "GET",
    path: "/audit",
    summary: "The audit log, youngest first. `before`: the number of the last entry that was shown",
    roles: administrators,
    query: object({
      ...filter,
      before: Type.Optional(Type.Integer({ minimum: 1 })),
      pageSize: Type.Optional(Type.Integer({ minimum: 1, maximum: 200 })),
    }),
    reply: object({ items: Type.Array(entry), total: count, nextBefore: orNull(count) }),
  },
  exportAudit: {
    method: "GET",
    path: "/audit.csv",
    summary: "The same, all of it, as CSV",
    roles: administrators,
    query: object(filter),
    stream: "text/csv",
  },
} as const satisfies Routes;
