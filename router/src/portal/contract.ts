/**
 * The portal's JSON API as one table: routes, roles, requests and replies. Fastify routes, role checks, validation, the
 * OpenAPI document and the matrix of the tests are made of it. Nothing here has effects or needs Node.js.
 */
import { sessionContract } from "./contract/session.ts";

export const contract = {
  ...sessionContract,
} as const;

export type Contract = typeof contract;
