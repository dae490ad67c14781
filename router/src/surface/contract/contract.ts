/**
 * The contract: all routes with their callers, requests and replies. The portal's listener serves the routes for
 * signed-in people, the admin socket those for the operator, the console's listener those of them that its pages need.
 * Fastify routes, checks, the OpenAPI document, the types of the `weiche` command and the matrix of the tests are
 * derived from it. Nothing here has effects or needs Node.js.
 */
import { accountsContract } from "./accounts.ts";
import { auditContract } from "./audit.ts";
import { chatContract } from "./chat.ts";
import { consoleContract } from "./console.ts";
import { invitationsContract, profileContract, signInContract } from "./identity.ts";
import { keysContract } from "./keys.ts";
import { packageContract } from "./package.ts";
import { modelsContract } from "./models.ts";
import { nodesContract } from "./nodes.ts";
import { noticesContract } from "./notices.ts";
import { requestsContract } from "./requests.ts";
import { routerContract } from "./router.ts";
import { serviceContract } from "./service.ts";
import { sessionContract } from "./session.ts";
import { usageContract } from "./usage.ts";
import { usersContract } from "./users.ts";

export const contract = {
  ...sessionContract,
  ...signInContract,
  ...profileContract,
  ...invitationsContract,
  ...usersContract,
  ...keysContract,
  ...usageContract,
  ...noticesContract,
  ...modelsContract,
  ...serviceContract,
  ...chatContract,
  ...packageContract,
  ...auditContract,
  ...accountsContract,
  ...nodesContract,
  ...requestsContract,
  ...consoleContract,
  ...routerContract,
} as const;

export type Contract = typeof contract;

/** The routes that the portal's listener serves. */
export type PortalContract = {
  readonly [
    Name in keyof Contract as Contract[Name]["may"][number] extends "operator"
      ? never
      : Contract[Name] extends { readonly only: string }
        ? never
        : Name
  ]: Contract[Name];
};

/** The only routes that the console's listener serves: a stolen cookie of the console cannot make keys. */
export const consoleRoutes = [
  "openConsole",
  "showConsole",
  "closeConsole",
  "watchConsole",
  "setMaintenance",
  "prewarm",
  "listRunning",
  "showAccount",
  "blockAccount",
  "unblockAccount",
  "listUsers",
  "blockUser",
  "unblockUser",
] as const satisfies readonly (keyof Contract)[];
export type ConsoleContract = Pick<Contract, (typeof consoleRoutes)[number]>;
