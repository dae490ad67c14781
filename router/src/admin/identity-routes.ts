/** The operators' API of how people sign in, for those who cannot any more. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { Type, type Static } from "typebox";
import { asId, type UserId } from "@weiche/shared/ids.ts";
import type { Identity } from "../access/identity.ts";

const byId = Type.Object(
  { id: Type.String({ pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" }) },
  { additionalProperties: false },
);

export function addIdentityRoutes(app: FastifyInstance, identity: Identity): void {
  const { invitations, passwords, login, secondFactor, profile } = identity;
  const deeds: Readonly<Record<string, (id: UserId) => Promise<object | void>>> = {
    invite: (id) => invitations.renew(id),
    "reset-password": (id) => passwords.makeResetLink(id),
    logout: (id) => login.signOutEverywhere(id),
    "totp-off": (id) => secondFactor.turnOff(id),
  };
  for (const [name, deed] of Object.entries(deeds)) {
    app.post(`/users/:id/${name}`, { schema: { params: byId } }, async (request: FastifyRequest) => {
      const { id } = request.params as Static<typeof byId>;
      await profile.show(asId<UserId>(id)); // or there is no such user
      return { id, ...(await deed(asId<UserId>(id))) };
    });
  }
}
