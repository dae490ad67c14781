/**
 * The portal's JSON API as one table: routes, roles, requests and replies. Fastify routes, role checks, validation, the
 * OpenAPI document and the matrix of the tests are made of it. Nothing here has effects or needs Node.js.
 */
import { keysContract } from "./contract/keys.ts";
import { sessionContract } from "./contract/session.ts";
import { usersContract } from "./contract/users.ts";

export const contract = {
  ...sessionContract,
  ...usersContract,
  ...keysContract,
} as const;

export type Contract = typeof contract;
