/** Creates all handlers of the contract. */
import type { Handlers } from "../server/add-routes.ts";
import { contract, type Contract } from "../contract/contract.ts";
import { createExportPlaces } from "./export-places.ts";
import type { HandlerDeps } from "./handler-deps.ts";
import { accountsHandlers } from "./accounts.ts";
import { auditHandlers } from "./audit.ts";
import { chatHandlers } from "./chat.ts";
import { consoleHandlers } from "./console.ts";
import { identityHandlers } from "./identity.ts";
import { invoicesHandlers } from "./billing/invoices.ts";
import { keysHandlers } from "./keys.ts";
import { modelsHandlers } from "./models.ts";
import { nodesHandlers } from "./nodes.ts";
import { noticesHandlers } from "./notices.ts";
import { ownAccountHandlers } from "./billing/own-account.ts";
import { packageHandlers } from "./billing/package.ts";
import { requestsHandlers } from "./requests.ts";
import { routerHandlers } from "./router.ts";
import { serviceHandlers } from "./service.ts";
import { sessionHandlers } from "./session.ts";
import { usageHandlers } from "./usage.ts";
import { usersHandlers } from "./users.ts";

export function createHandlers(parts: Omit<HandlerDeps, "exports">): Handlers<Contract> {
  const deps: HandlerDeps = { ...parts, exports: createExportPlaces(parts.clock) };
  return {
    ...sessionHandlers(deps, contract),
    ...identityHandlers(deps),
    ...usersHandlers(deps),
    ...keysHandlers(deps),
    ...packageHandlers(deps),
    ...invoicesHandlers(deps),
    ...auditHandlers(deps),
    ...usageHandlers(deps),
    ...noticesHandlers(deps),
    ...modelsHandlers(deps),
    ...serviceHandlers(deps),
    ...chatHandlers(deps),
    ...accountsHandlers(deps),
    ...ownAccountHandlers(deps),
    ...nodesHandlers(deps),
    ...requestsHandlers(deps),
    ...consoleHandlers(deps),
    ...routerHandlers(deps),
  };
}
