/** The operators' API of what runs over all accounts, and of what the people of one are told. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { Type, type Static } from "typebox";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import type { Audit } from "../../rights/audit.ts";
import type { Notices } from "../../accounts/notices.ts";
import type { RefusalReport } from "../../usage/refusal-report.ts";
import type { Evaluator } from "../../usage/evaluator.ts";
import type { RefusedUsage } from "../../usage/usage-refused.ts";

export interface Business {
  readonly evaluator: Pick<Evaluator, "evaluate">;
  readonly audit: Pick<Audit, "verify">;
  readonly notices: Pick<Notices, "list">;
  readonly refusals: (account: AccountId) => Promise<RefusalReport>;
  readonly refusedUsage: (wish: { readonly limit: number; readonly node?: string }) => Promise<readonly RefusedUsage[]>;
}

const closed = { additionalProperties: false } as const;
const id = Type.String({ pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" });
const number = Type.Optional(Type.String({ pattern: "^[1-9][0-9]{0,8}$" }));
const noticesOf = Type.Object({ account: id, limit: number }, closed);
const refusalsOf = Type.Object({ account: id }, closed);
const verified = Type.Object({ account: Type.Optional(id) }, closed);

const refusedWish = Type.Object({ limit: number, node: Type.Optional(Type.String({ maxLength: 64 })) }, closed);

export function addBusinessRoutes(app: FastifyInstance, business: Business): void {
  const { evaluator, audit, notices, refusals, refusedUsage } = business;
  app.get("/usage/refused", { schema: { querystring: refusedWish } }, (request: FastifyRequest) => {
    const { limit = "100", ...wish } = request.query as Static<typeof refusedWish>;
    return refusedUsage({ ...wish, limit: Number(limit) });
  });
  app.post("/credits/evaluate", () => evaluator.evaluate());
  app.get("/notices", { schema: { querystring: noticesOf } }, async (request: FastifyRequest) => {
    const { account, limit = "50" } = request.query as Static<typeof noticesOf>;
    const viewer = { accountId: asId<AccountId>(account), seesAll: true };
    return (await notices.list(viewer, { limit: Number(limit) })).items;
  });
  app.get("/refusals", { schema: { querystring: refusalsOf } }, (request: FastifyRequest) =>
    refusals(asId<AccountId>((request.query as Static<typeof refusalsOf>).account)),
  );
  app.post("/audit/verify", { schema: { body: verified } }, (request: FastifyRequest) => {
    const { account } = request.body as Static<typeof verified>;
    return audit.verify(account === undefined ? undefined : asId<AccountId>(account));
  });
}
