/** All handlers of the contract, made from the parts of the router that they show. */
import type { Handlers } from "../server/add-routes.ts";
import { contract, type Contract } from "../contract/contract.ts";
import { ExportPlaces } from "./export-places.ts";
import { accountsHandlers, type AccountRouteDeps } from "./accounts.ts";
import { auditHandlers, type AuditRouteDeps } from "./audit.ts";
import { chatHandlers, type ChatRouteDeps } from "./chat.ts";
import { identityHandlers, type IdentityRouteDeps } from "./identity.ts";
import { keysHandlers, type KeyRouteDeps } from "./keys.ts";
import { modelsHandlers, type ModelRouteDeps } from "./models.ts";
import { nodesHandlers, type NodeRouteDeps } from "./nodes.ts";
import { noticesHandlers, type NoticeRouteDeps } from "./notices.ts";
import { packageHandlers, type PackageRouteDeps } from "./package.ts";
import { serviceHandlers, type ServiceRouteDeps } from "./service.ts";
import { sessionHandlers, type SessionRouteDeps } from "./session.ts";
import { usageHandlers, type UsageRouteDeps } from "./usage.ts";
import { usersHandlers, type UserRouteDeps } from "./users.ts";

export type HandlerDeps = Omit<SessionRouteDeps, "routes"> &
  IdentityRouteDeps &
  UserRouteDeps &
  KeyRouteDeps &
  PackageRouteDeps &
  AuditRouteDeps &
  UsageRouteDeps &
  NoticeRouteDeps &
  ModelRouteDeps &
  ServiceRouteDeps &
  ChatRouteDeps &
  AccountRouteDeps &
  NodeRouteDeps;

export function createHandlers(parts: Omit<HandlerDeps, "exports">): Handlers<Contract> {
  const deps: HandlerDeps = { ...parts, exports: new ExportPlaces(parts.clock) };
  return {
    ...sessionHandlers({ ...deps, routes: contract }),
    ...identityHandlers(deps),
    ...usersHandlers(deps),
    ...keysHandlers(deps),
    ...packageHandlers(deps),
    ...auditHandlers(deps),
    ...usageHandlers(deps),
    ...noticesHandlers(deps),
    ...modelsHandlers(deps),
    ...serviceHandlers(deps),
    ...chatHandlers(deps),
    ...accountsHandlers(deps),
    ...nodesHandlers(deps),
  };
}
