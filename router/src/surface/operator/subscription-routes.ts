/** The operators' API of packages: what each route takes, checked before it is looked at. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { Type, type Static } from "typebox";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import { subscriptionActions } from "../../subscriptions/subscription-rules.ts";
import type { SubscriptionWish } from "../../subscriptions/subscriptions.ts";
import type { AdminContext } from "./admin-api.ts";

const closed = { additionalProperties: false } as const;
const byId = Type.Object({ id: Type.String({ pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" }) }, closed);
const wish = { action: Type.Enum([...subscriptionActions]), package: Type.Optional(Type.String()) };
const preview = Type.Object(wish, closed);
const change = Type.Object({ ...wish, quoteId: Type.Optional(Type.String()) }, closed);

export function addSubscriptionRoutes(app: FastifyInstance, { accounts }: AdminContext): void {
  const { subscriptions } = accounts;
  const path = "/accounts/:id/subscription";
  app.get(path, { schema: { params: byId } }, (request) => subscriptions.show(accountOf(request)));
  app.post(path, { schema: { params: byId, body: change } }, (request) => {
    const { quoteId, ...wanted } = request.body as Static<typeof change>;
    return subscriptions.change(accountOf(request), wanted, quoteId);
  });
  app.post(`${path}/preview`, { schema: { params: byId, body: preview } }, (request) =>
    subscriptions.preview(accountOf(request), request.body as SubscriptionWish),
  );
  app.get("/accounts/:id/invoice", { schema: { params: byId } }, (request) =>
    subscriptions.invoice(accountOf(request)),
  );
}

function accountOf(request: FastifyRequest): AccountId {
  return asId<AccountId>((request.params as Static<typeof byId>).id);
}
