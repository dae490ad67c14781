/** Route of the API's refusals and limits, for customers. */
import { Type } from "typebox";
import { count, everybody, object, orNull, type RouteTable } from "./route.ts";

/** All kinds of refusals. The type checker compares them with the tables of refusals. */
const kinds = Type.Enum([
  "invalid_request",
  "context_window_exceeded",
  "invalid_api_key",
  "no_package",
  "key_model_access_denied",
  "path_not_supported",
  "body_too_large",
  "insufficient_quota",
  "rate_limit_exceeded",
  "internal",
  "engine_died",
  "request_barred",
  "address_limit",
  "model_switching",
  "model_unavailable",
  "overloaded",
  "no_node_available",
  "maintenance",
  "timeout",
]);

export const serviceContract = {
  showService: {
    summary: "List the API's refusals, whether to retry each, and the limits for all accounts",
    may: everybody,
    reply: object({
      refusals: Type.Array(
        object({
          kind: kinds,
          status: count,
          type: orNull(Type.String({ description: "error.type. null if the answer is an HTML page." })),
          code: orNull(Type.String({ description: "error.code. null if the answer is an HTML page." })),
          retry: Type.Boolean({ description: "Whether the same request may succeed later." }),
        }),
      ),
      limits: object({
        requestsPerSecond: orNull(Type.Number({ description: "The limit per network address. null without a limit." })),
        requestBurst: count,
        bodyBytes: count,
        requestSeconds: count,
        activeKeysPerUser: count,
        usersPerAccount: count,
        changesAtOnce: count,
      }),
    }),
  },
} as const satisfies RouteTable;
