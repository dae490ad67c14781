/** The level of the router's log. */
import { Type } from "typebox";
import { count, object, type Routes } from "./route.ts";

const level = Type.Enum(["trace", "debug", "info", "warn", "error", "fatal"]);
const state = object({
  level: Type.String(),
  then: Type.Optional(
    object({ level: Type.String(), seconds: count }, { description: "What it falls back to, and when." }),
  ),
});

export const logContract = {
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
