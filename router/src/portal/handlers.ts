/** All handlers of the portal's JSON API, made from the parts of the router that they show. */
import type { Handlers } from "./api-routes.ts";
import { contract, type Contract } from "./contract.ts";
import { keysHandlers, type KeyRouteDeps } from "./routes/keys.ts";
import { sessionHandlers, type SessionRouteDeps } from "./routes/session.ts";
import { usersHandlers, type UserRouteDeps } from "./routes/users.ts";

export type HandlerDeps = Omit<SessionRouteDeps, "routes"> & UserRouteDeps & KeyRouteDeps;

export function createHandlers(deps: HandlerDeps): Handlers<Contract> {
  return {
    ...sessionHandlers({ ...deps, routes: contract }),
    ...usersHandlers(deps),
    ...keysHandlers(deps),
  };
}
