/** Serves the contract's routes to the operator, on a Unix socket in the state directory (mode 0600). */
import fastify from "fastify";
import { listenOnSocket } from "@weiche/shared/program/admin-socket.ts";
import { closeServer } from "@weiche/shared/program/ops-server.ts";
import type { Database } from "../../db/database.ts";
import { operator } from "../../rights/accounts-context.ts";
import { contract, type Contract } from "../contract/contract.ts";
import { addRoutes, type ErrorAnswer, type Handlers } from "../server/add-routes.ts";
import { asOperated, operated } from "../server/operated.ts";
import { asRequestError, errorAnswers } from "../server/error-answers.ts";
import { schemaChecks } from "../server/schema-checks.ts";

interface AdminSocketDeps {
  readonly database: Database;
  readonly handlers: Handlers<Contract>;
  readonly events: AdminEvents;
}

export interface AdminEvents {
  /** A command failed because of a bug or an outage. */
  adminFailed(error: unknown): void;
}

/** Replies of routes with `of` also carry the account's id as `accountId`. */
export async function openAdminSocket(socketPath: string, deps: AdminSocketDeps): Promise<AsyncDisposable> {
  const { database, handlers, events } = deps;
  const app = fastify({
    exposeHeadRoutes: false,
    ajv: schemaChecks,
  });
  addRoutes(app, contract, operated(contract, handlers, database), {
    serve: (route) => (route.only === "console" ? undefined : asOperated(route)),
    admit: () => ({ session: undefined, origin: operator, address: operator.source }),
    answerTo: (error) => answerTo(error, events),
  });
  await app.ready();
  await listenOnSocket(app.server, socketPath);
  return {
    async [Symbol.asyncDispose]() {
      await closeServer(app.server);
      await app.close();
    },
  };
}

function answerTo(error: unknown, events: AdminEvents): ErrorAnswer {
  const refused = asRequestError(error);
  if (refused) {
    const { kind: code, message: error, details } = refused;
    return { status: errorAnswers[code].status, headers: {}, body: { error, code, details } };
  }
  events.adminFailed(error);
  return { status: 500, headers: {}, body: { error: "the router failed; its log says why" } };
}
