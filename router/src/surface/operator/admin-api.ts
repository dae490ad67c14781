/** The operators' API behind the `weiche` command: HTTP and JSON over the Unix socket in the state directory (mode 0600). */
import fastify, { type FastifyError, type FastifyInstance } from "fastify";
import { listenOnSocket } from "@weiche/shared/program/admin-socket.ts";
import { StartError } from "@weiche/shared/files/directory-lock.ts";
import type { AccountId, UserId } from "@weiche/shared/ids.ts";
import { closeServer } from "@weiche/shared/program/ops-server.ts";
import type { Accounts } from "../../accounts/accounts.ts";
import { Refused, type RefusalKind } from "../../rights/refused.ts";
import { readJson } from "@weiche/shared/http/json-guard.ts";
import type { UsageReport, UsageWish } from "../../usage/usage-report.ts";
import { addAdminRoutes } from "./admin-routes.ts";
import { addSubscriptionRoutes } from "./subscription-routes.ts";

export interface AdminContext {
  readonly accounts: Accounts;
  readonly usage: (account: AccountId, wish: UsageWish) => Promise<UsageReport>;
  /** Plain data, shown as it is. */
  readonly nodes: () => readonly object[];
  /** The catalogue as operators see it. */
  readonly models: () => readonly { readonly id: string }[];
  /** Throws a `StartError` with the mistakes if the file is wrong; the old catalogue stays then. */
  readonly reloadCatalogue: () => void | Promise<void>;
  /** Whether the link went out; null, or absent: no mail is sent here. */
  readonly sendInvitation?: (userId: UserId, invitationUrl: string) => Promise<boolean | null>;
  /** More routes, of parts that this one does not know. */
  readonly more?: (app: FastifyInstance) => void;
}

export interface AdminEvents {
  /** A command failed for a reason that is ours. */
  adminFailed(error: unknown): void;
}

const statusOf: Readonly<Record<RefusalKind, number>> = {
  invalid: 400,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  price_changed: 409,
  too_many_attempts: 429,
};

export async function createAdminApi(
  socketPath: string,
  context: AdminContext,
  events: AdminEvents,
): Promise<AsyncDisposable> {
  const app = fastify({
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false } },
  });
  app.removeContentTypeParser("application/json");
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, bytes, done) => {
    const json = readJson(bytes as Buffer);
    if ("problem" in json) done(new Refused("invalid", json.problem));
    else done(null, json.value);
  });
  app.setErrorHandler((error: FastifyError | Error, _request, reply) => {
    const refusal = asRefusal(error);
    if (!refusal) events.adminFailed(error);
    const { kind, message } = refusal ?? { kind: undefined, message: "the router failed; its log says why" };
    return reply.status(kind ? statusOf[kind] : 500).send({ error: message, ...(kind ? { code: kind } : {}) });
  });
  app.setNotFoundHandler((_request, reply) => reply.status(404).send({ error: "there is no such command" }));
  addAdminRoutes(app, context);
  addSubscriptionRoutes(app, context);
  context.more?.(app);
  await app.ready();
  await listenOnSocket(app.server, socketPath);
  return {
    async [Symbol.asyncDispose]() {
      await closeServer(app.server);
      await app.close();
    },
  };
}

function asRefusal(error: FastifyError | Error): Refused | undefined {
  if (error instanceof Refused) return error;
  if (error instanceof StartError) return new Refused("conflict", error.message);
  const { statusCode, validation } = error as Partial<FastifyError>;
  const wrong = validation?.[0];
  if (wrong?.keyword === "pattern") return new Refused("invalid", `${wrong.instancePath.slice(1)} is not well-formed`);
  if (statusCode !== undefined && statusCode < 500) return new Refused("invalid", error.message);
  return undefined;
}
