/**
 * The portal's JSON API as one table: routes, roles, requests and replies. Fastify routes, role checks, validation, the
 * OpenAPI document and the matrix of the tests are made of it. Nothing here has effects or needs Node.js.
 */
import { auditContract } from "./contract/audit.ts";
import { chatContract } from "./contract/chat.ts";
import { identityContract } from "./contract/identity.ts";
import { keysContract } from "./contract/keys.ts";
import { packageContract } from "./contract/package.ts";
import { modelsContract } from "./contract/models.ts";
import { noticesContract } from "./contract/notices.ts";
import { sessionContract } from "./contract/session.ts";
import { usageContract } from "./contract/usage.ts";
import { usersContract } from "./contract/users.ts";

export const contract = {
  ...sessionContract,
  ...identityContract,
  ...usersContract,
  ...keysContract,
  ...usageContract,
  ...noticesContract,
  ...modelsContract,
  ...chatContract,
  ...packageContract,
  ...auditContract,
} as const;

export type Contract = typeof contract;
