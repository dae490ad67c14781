/** Who is signed in. */
import type { Database } from "../../db/database.ts";
import type { Handlers } from "../server/add-routes.ts";
import type { sessionContract } from "../contract/session.ts";
import type { Routes } from "../contract/route.ts";

export interface SessionRouteDeps {
  readonly database: Database;
  readonly apiUrl: string;
  /** The whole contract: what a role may do follows from it. */
  readonly routes: Routes;
}

export function sessionHandlers({ database, apiUrl, routes }: SessionRouteDeps): Handlers<typeof sessionContract> {
  return {
    async session({ session: { user } }) {
      const accounts = database.kysely.selectFrom("accounts").select(["id", "name"]);
      return {
        user: { id: user.id, email: user.email, role: user.role },
        account: await accounts.where("id", "=", user.accountId).executeTakeFirstOrThrow(),
        actions: Object.entries(routes).flatMap(([name, { may }]) => (may.includes(user.role) ? [name] : [])),
        language: user.language,
        theme: user.theme,
        apiUrl,
      };
    },
  };
}
