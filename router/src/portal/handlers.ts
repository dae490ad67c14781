/** All handlers of the portal's JSON API, made from the parts of the router that they show. */
import type { Handlers } from "./api-routes.ts";
import { contract, type Contract } from "./contract.ts";
import { sessionHandlers, type SessionRouteDeps } from "./routes/session.ts";

export type HandlerDeps = Omit<SessionRouteDeps, "routes">;

export function createHandlers(deps: HandlerDeps): Handlers<Contract> {
  return {
    ...sessionHandlers({ ...deps, routes: contract }),
  };
}
