/**
 * The contract: all routes with their callers, requests and replies. The portal's listener serves the routes for
 * signed-in people, the admin socket the operator's routes, and the console's listener the routes that its pages need.
 * Fastify routes, checks, the types of the `weiche` command and the matrix of the tests are derived from it. It has no
 * effects and needs no Node.js.
 */
import { addresses, splitAddress, type portalAddresses, type RouteName } from "./addresses.ts";
import { accountsContract } from "./accounts.ts";
import { auditContract } from "./audit.ts";
import { chatContract } from "./chat.ts";
import { consoleContract } from "./console.ts";
import { invitationsContract, profileContract, signInContract } from "./identity.ts";
import { keysContract } from "./keys.ts";
import { invoicesContract } from "./invoices.ts";
import { ownAccountContract } from "./own-account.ts";
import { packageContract } from "./package.ts";
import { modelsContract } from "./models.ts";
import { nodesContract } from "./nodes.ts";
import { noticesContract } from "./notices.ts";
import { requestsContract } from "./requests.ts";
import type { Route, RouteTerms } from "./route.ts";
import { routerContract } from "./router.ts";
import { serviceContract } from "./service.ts";
import { sessionContract } from "./session.ts";
import { usageContract } from "./usage.ts";
import { usersContract } from "./users.ts";

const terms = {
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
  ...invoicesContract,
  ...auditContract,
  ...accountsContract,
  ...ownAccountContract,
  ...nodesContract,
  ...requestsContract,
  ...consoleContract,
  ...routerContract,
} as const satisfies Readonly<Record<RouteName, RouteTerms>>;

export type Contract = {
  readonly [Name in RouteName]: (typeof terms)[Name] & Pick<Route, "method" | "path">;
};

export const contract = Object.fromEntries(
  Object.entries(terms).map(([name, route]) => {
    const [method, path] = splitAddress(addresses[name as RouteName]);
    return [name, { ...route, method, path }];
  }),
) as Contract;

/** The routes that the portal's listener serves. */
export type PortalContract = Pick<Contract, keyof typeof portalAddresses>;

/**
 * The only routes that the console's listener serves, so that a stolen console cookie cannot make keys of an account that
 * has a package. There, `createAccount` takes no package.
 */
export const consoleRoutes = [
  "openConsole",
  "showConsole",
  "closeConsole",
  "watchConsole",
  "startCapacity",
  "cancelCapacity",
  "setMaintenance",
  "acknowledgeFailures",
  "prewarm",
  "listRunning",
  "listPast",
  "explainRequest",
  "createAccount",
  "showAccount",
  "blockAccount",
  "unblockAccount",
  "listUsers",
  "blockUser",
  "unblockUser",
] as const satisfies readonly (keyof Contract)[];
export type ConsoleContract = Pick<Contract, (typeof consoleRoutes)[number]>;
