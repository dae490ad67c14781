/** Handler that shows the signed-in user. */
import type { Handlers } from "../server/add-routes.ts";
import type { sessionContract } from "../contract/session.ts";
import type { Routes } from "../contract/route.ts";
import type { HandlerDeps } from "./handler-deps.ts";

/** `routes`: the whole contract, which defines each role's actions. */
export function sessionHandlers({ database, apiUrl }: HandlerDeps, routes: Routes): Handlers<typeof sessionContract> {
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
