/** The operators' API behind the `weiche` command. */
import { join } from "node:path";
import type { ModelId } from "@weiche/shared/ids.ts";
import { createNotices } from "./accounts/notices.ts";
import type { Core } from "./core.ts";
import type { Nodes } from "./open-nodes.ts";
import type { Portal } from "./open-portal.ts";
import type { Storage } from "./open-storage.ts";
import { addAccountRoutes } from "./surface/operator/account-routes.ts";
import { createAdminApi } from "./surface/operator/admin-api.ts";
import { addBusinessRoutes } from "./surface/operator/business-routes.ts";
import { addIdentityRoutes } from "./surface/operator/identity-routes.ts";
import { addNodeRoutes } from "./surface/operator/node-routes.ts";
import { modelsForOperators, nodesForOperators } from "./surface/operator/node-views.ts";
import type { Evaluator } from "./usage/evaluator.ts";
import { reportRefusals } from "./usage/refusal-report.ts";
import { listRefused } from "./usage/usage-refused.ts";
import { reportUsage } from "./usage/usage-report.ts";

export async function openOperators(
  { config, clock, events, limiter, catalogue, opened }: Core,
  { database }: Storage,
  { wishes, details, place, nowMs }: Nodes,
  { accounts, identity }: Portal,
  evaluator: Evaluator,
): Promise<void> {
  const { models, reload } = catalogue;
  const placeAlone = (model: ModelId) => place({ model });
  const adminContext = {
    accounts,
    usage: (account, wish) => reportUsage(database, clock, account, wish),
    nodes: () => nodesForOperators(details(), nowMs()),
    models: () => modelsForOperators(catalogue.get(), details(), clock.now()),
    reloadCatalogue: reload,
    sendInvitation: (userId, url) => identity.invitations.send(userId, url),
    more(app) {
      addNodeRoutes(app, { wishes, nodes: details, models, place: placeAlone, clock });
      addBusinessRoutes(app, {
        evaluator,
        audit: accounts.audit,
        notices: createNotices(database, clock),
        refusals: (account) => reportRefusals(database.pool, clock, account),
        refusedUsage: (wish) => listRefused(database.pool, wish),
      });
      addAccountRoutes(app, { accounts, database, limiter, clock });
      addIdentityRoutes(app, identity, accounts);
    },
  } satisfies Parameters<typeof createAdminApi>[1];
  opened.use(await createAdminApi(join(config.stateDir, "admin.sock"), adminContext, events));
}
