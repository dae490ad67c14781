/** All handlers of the portal's JSON API, made from the parts of the router that they show. */
import type { Handlers } from "./api-routes.ts";
import { contract, type Contract } from "./contract.ts";
import { ExportPlaces } from "./export-places.ts";
import { auditHandlers, type AuditRouteDeps } from "./routes/audit.ts";
import { chatHandlers, type ChatRouteDeps } from "./routes/chat.ts";
import { identityHandlers, type IdentityRouteDeps } from "./routes/identity.ts";
import { keysHandlers, type KeyRouteDeps } from "./routes/keys.ts";
import { modelsHandlers, type ModelRouteDeps } from "./routes/models.ts";
import { noticesHandlers, type NoticeRouteDeps } from "./routes/notices.ts";
import { packageHandlers, type PackageRouteDeps } from "./routes/package.ts";
import { sessionHandlers, type SessionRouteDeps } from "./routes/session.ts";
import { usageHandlers, type UsageRouteDeps } from "./routes/usage.ts";
import { usersHandlers, type UserRouteDeps } from "./routes/users.ts";

export type HandlerDeps = Omit<SessionRouteDeps, "routes"> &
  IdentityRouteDeps &
  UserRouteDeps &
  KeyRouteDeps &
  PackageRouteDeps &
  AuditRouteDeps &
  UsageRouteDeps &
  NoticeRouteDeps &
  ModelRouteDeps &
  ChatRouteDeps;

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
    ...chatHandlers(deps),
  };
}
