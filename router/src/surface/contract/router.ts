/** Routes of the router's own state, the list of routers, and the log level. */
import { Type } from "typebox";
import { count, instant, object, orNull, type RouteTable } from "./route.ts";

const level = Type.Enum(["trace", "debug", "info", "warn", "error", "fatal"]);
const state = object({
  level: Type.String(),
  then: Type.Optional(
    object(
      { level: Type.String(), seconds: count },
      { description: "The next level, and the seconds until it applies." },
    ),
  ),
});

export const routerContract = {
  showRouter: {
    summary:
      "Show the router's version, listeners, database, limit store, other routers, nodes, certificates and log level",
    may: ["operator"],
    reply: object({
      version: Type.String(),
      since: instant,
      listeners: Type.Record(Type.String(), Type.String()),
      database: object({
        server: Type.Enum(["embedded", "configured"]),
        answerMs: Type.Optional(
          Type.Number({ description: "Left out if the database failed or did not answer within 2 s." }),
        ),
      }),
      limitStore: Type.Optional(
        object(
          {
            address: Type.String(),
            down: Type.Optional(
              object({ since: instant, reason: Type.String() }, { description: "Left out if the store answers." }),
            ),
          },
          {
            description:
              "The store in which routers count account limits together. Left out if each router counts alone.",
          },
        ),
      ),
      otherRouters: Type.Integer({ minimum: 0, description: "Number of other routers that share the database." }),
      invoices: object(
        { since: orNull(Type.String()) },
        {
          description:
            "The first day on which a period may end to get an invoice. null without `invoices` in router.yaml.",
        },
      ),
      nodes: object({ live: count, known: count }),
      certificates: Type.Array(
        object({
          use: Type.String(),
          file: Type.Enum(["cert", "ca"]),
          path: Type.String(),
          expiresAt: instant,
          daysLeft: Type.Integer({ description: "Whole days. Negative if the certificate has expired." }),
        }),
      ),
      log: state,
    }),
  },
  listRouters: {
    summary: "List all routers that share the database, as of the last heartbeat",
    may: ["operator"],
    reply: Type.Array(
      object({
        id: Type.String(),
        isThis: Type.Boolean({ description: "Whether this router answers the request." }),
        state: Type.Enum(["starting", "ready", "leaving", "gone"], {
          description:
            "`leaving`: the router is stopping and finishes its answers. `gone`: no heartbeat for 15 s. Listed for a day.",
        }),
        host: orNull(Type.String({ description: "The host name of its machine." })),
        version: orNull(Type.String()),
        startedAt: orNull(instant),
        seenAt: instant,
        linkAddress: orNull(
          Type.String({ description: "The address that nodes dial. null if the router does not know it." }),
        ),
        dataAddress: orNull(Type.String()),
        runningRequests: orNull(count),
        clockAheadMs: orNull(
          Type.Integer({
            description: "How far its clock is surely ahead of the database's. Negative if it is behind.",
          }),
        ),
        limitStore: orNull(Type.String({ description: "Where the router counts account limits." })),
        catalogue: orNull(
          Type.String({ description: "A digest of its catalogue. Routers with different ones bill differently." }),
        ),
      }),
    ),
  },
  showLogLevel: {
    summary: "Show the router's log level",
    may: ["operator"],
    reply: state,
  },
  setLogLevel: {
    summary: "Set the log level for a limited time",
    may: ["operator"],
    body: object({ level, seconds: Type.Integer({ minimum: 1, maximum: 86_400 }) }),
    reply: state,
  },
} as const satisfies RouteTable;
