/** The router itself: how it is, and the level of its log. */
import { Type } from "typebox";
import { count, instant, object, orNull, type RouteTable } from "./route.ts";

const level = Type.Enum(["trace", "debug", "info", "warn", "error", "fatal"]);
const state = object({
  level: Type.String(),
  then: Type.Optional(
    object({ level: Type.String(), seconds: count }, { description: "What it falls back to, and when." }),
  ),
});

export const routerContract = {
  showRouter: {
    summary:
      "The router: version, listeners, database, limit store, other routers, nodes, certificates, level of the log",
    may: ["operator"],
    reply: object({
      version: Type.String(),
      since: instant,
      listeners: Type.Record(Type.String(), Type.String()),
      database: object({
        server: Type.Enum(["embedded", "configured"]),
        answerMs: Type.Optional(Type.Number({ description: "Absent: it did not answer within 2 s, or failed." })),
      }),
      limitStore: Type.Optional(
        object(
          {
            address: Type.String(),
            down: Type.Optional(
              object({ since: instant, reason: Type.String() }, { description: "Absent: the store answers." }),
            ),
          },
          { description: "Where routers count the limits of accounts together. Absent: each router counts its own." },
        ),
      ),
      otherRouters: Type.Integer({ minimum: 0, description: "That share the database." }),
      nodes: object({ live: count, known: count }),
      certificates: Type.Array(
        object({
          use: Type.String(),
          file: Type.Enum(["cert", "ca"]),
          path: Type.String(),
          expiresAt: instant,
          daysLeft: Type.Integer({ description: "Whole days; negative: it has expired." }),
        }),
      ),
      log: state,
    }),
  },
  listRouters: {
    summary: "All routers that share the database, as of the last heartbeat",
    may: ["operator"],
    reply: Type.Array(
      object({
        id: Type.String(),
        isThis: Type.Boolean({ description: "It answers this request." }),
        state: Type.Enum(["starting", "ready", "leaving", "gone"], {
          description: "`leaving`: it stops, and lets answers end. `gone`: no heartbeat for 15 s; told for a day.",
        }),
        host: orNull(Type.String({ description: "Of its machine." })),
        version: orNull(Type.String()),
        startedAt: orNull(instant),
        seenAt: instant,
        linkAddress: orNull(Type.String({ description: "Where nodes dial it; null: it does not know." })),
        dataAddress: orNull(Type.String()),
        runningRequests: orNull(count),
        clockAheadMs: orNull(
          Type.Integer({ description: "Of the database's clock, as far as it is certain; negative: behind." }),
        ),
        limitStore: orNull(Type.String({ description: "Where limits of accounts are kept." })),
      }),
    ),
  },
  showLogLevel: {
    summary: "The level of the router's log",
    may: ["operator"],
    reply: state,
  },
  setLogLevel: {
    summary: "Another level for a while; it falls back by itself",
    may: ["operator"],
    body: object({ level, seconds: Type.Integer({ minimum: 1, maximum: 86_400 }) }),
    reply: state,
  },
} as const satisfies RouteTable;
