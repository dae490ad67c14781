/** The level of the router's log, which the operator changes for a while. */
import type { logContract } from "../contract/log.ts";
import type { Handlers } from "../server/add-routes.ts";
import type { HandlerDeps } from "./handler-deps.ts";

export function logHandlers({ logLevel }: HandlerDeps): Handlers<typeof logContract> {
  return {
    showLogLevel: () => logLevel.state,
    setLogLevel: ({ body: { level, seconds } }) => logLevel.set(level, seconds),
  };
}
