/** The router itself: how it is, and the level of its log. */
import { Type } from "typebox";
import { count, instant, object, type Routes } from "./route.ts";

const level = Type.Enum(["trace", "debug", "info", "warn", "error", "fatal"]);
const state = object({
  level: Type.String(),
  then: Type.Optional(
    object({ level: Type.String(), seconds: count }, { description: "What it falls back to, and when." }),
  ),
});

export const routerContract = {
  showRouter: {
    method: "GET",
    path: "/router",
    summary: "The router: version, listeners, database, other routers, nodes, certificates, level of the log",
    may: ["operator"],
    reply: object({
      version: Type.String(),
      since: instant,
      listeners: Type.Record(Type.String(), Type.String()),
      database: object({
        server: Type.Enum(["embedded", "configured"]),
        answerMs: Type.Optional(Type.Number({ description: "Absent: it did not answer within 2 s, or failed." })),
      }),
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
  showLogLevel: {
    method: "GET",
    path: "/log",
    summary: "The level of the router's log",
    may: ["operator"],
    reply: state,
  },
  setLogLevel: {
    method: "POST",
    path: "/log",
    summary: "Another level for a while; it falls back by itself",
    may: ["operator"],
    body: object({ level, seconds: Type.Integer({ minimum: 1, maximum: 86_400 }) }),
    reply: state,
  },
} as const satisfies Routes;
