/** The operators' API of how people sign in, for those who cannot any more. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { Type, type Static } from "typebox";
import { asId, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import type { Identity } from "../../accounts/identity.ts";
import type { Accounts } from "../../accounts/accounts.ts";

const id = Type.String({ pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" });
const byId = Type.Object({ id }, { additionalProperties: false });
const ofAccount = Type.Object({ account: id }, { additionalProperties: false });

export function addIdentityRoutes(app: FastifyInstance, identity: Identity, accounts: Pick<Accounts, "show">): void {
  const { invitations, passwords, login, secondFactor, profile } = identity;
  const deeds: Readonly<Record<string, (id: UserId) => Promise<object | void>>> = {
    invite: (user) => invitations.renew(user),
    withdraw: (user) => invitations.withdraw(user),
    "reset-password": (user) => passwords.makeResetLink(user),
    logout: (user) => login.signOutEverywhere(user),
    "totp-off": (user) => secondFactor.turnOff(user),
  };
  for (const [name, deed] of Object.entries(deeds)) {
    app.post(`/users/:id/${name}`, { schema: { params: byId } }, async (request: FastifyRequest) => {
      const { id: user } = request.params as Static<typeof byId>;
      await profile.show(asId<UserId>(user)); // or there is no such user
      return { id: user, ...(await deed(asId<UserId>(user))) };
    });
  }
  app.get("/invitations", { schema: { querystring: ofAccount } }, async (request: FastifyRequest) => {
    const { account } = request.query as Static<typeof ofAccount>;
    await accounts.show(asId<AccountId>(account)); // or there is no such account
    return invitations.list(asId<AccountId>(account));
  });
}
