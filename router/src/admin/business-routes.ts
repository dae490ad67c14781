/** The operators' API of what runs over all accounts. */
import type { FastifyInstance } from "fastify";
import type { Evaluator } from "../credits/evaluator.ts";

export interface Business {
  readonly evaluator: Pick<Evaluator, "evaluate">;
}

export function addBusinessRoutes(app: FastifyInstance, { evaluator }: Business): void {
  app.post("/credits/evaluate", () => evaluator.evaluate());
}
