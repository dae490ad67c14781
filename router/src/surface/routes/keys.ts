/** API keys, of the session's user or of the whole account as the role allows. */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { asId, type KeyId, type UserId } from "@weiche/shared/ids.ts";
import type { Session } from "../../sign-in/session.ts";
import type { Accounts } from "../../accounts/accounts.ts";
import { listKeys } from "../../accounts/key-list.ts";
import type { KeyView, KeyWish } from "../../accounts/keys.ts";
import { found } from "../../rights/refused.ts";
import type { Database } from "../../db/database.ts";
import { readInstant } from "../api-request.ts";
import type { Handlers } from "../api-routes.ts";
import type { keysContract } from "../contract/keys.ts";
import { pageWindow } from "../contract/route.ts";
import { readRestrictions } from "./users.ts";

export interface KeyRouteDeps {
  readonly accounts: Accounts;
  readonly database: Database;
  readonly clock: Clock;
  /** Models that there are. */
  readonly models: () => Iterable<string>;
}

export function keysHandlers({ accounts, database, clock, models }: KeyRouteDeps): Handlers<typeof keysContract> {
  const one = async ({ user }: Session, id: string) => {
    const filter = { id: asId<KeyId>(id), ...visibleTo(user) };
    const page = { limit: 1, offset: 0, sort: "name", order: "asc" } as const;
    const { items } = await listKeys(database, user.accountId, filter, page, clock.now());
    return found(items[0], "key", id);
  };
  const wishOf = (body: { readonly expiresAt?: string | null } & Parameters<typeof readRestrictions>[0]): KeyWish => ({
    ...readRestrictions(body, models()),
    ...(body.expiresAt === undefined
      ? {}
      : { expiresMs: body.expiresAt === null ? null : readInstant(body.expiresAt, "expiresAt") }),
  });
  return {
    async listKeys({ session, query }) {
      const { page, pageSize, ...window } = pageWindow(query);
      const { sort = "name", order = "asc", state, search, userId } = query;
      const filter = {
        ...(userId && { userId: asId<UserId>(userId) }),
        ...(state && { state }),
        ...(search && { search }),
        ...visibleTo(session.user),
      };
      if (userId !== undefined && filter.userId !== userId) return { items: [], total: 0, page, pageSize };
      const list = await listKeys(database, session.user.accountId, filter, { ...window, sort, order }, clock.now());
      return { ...list, page, pageSize };
    },
    showKey: ({ session, params }) => one(session, params.id),
    async createKey({ session, body, origin }) {
      const userId = asId<UserId>(body.userId ?? session.user.id);
      return shownOnce(await accounts.as(origin).keys.create(userId, { name: body.name, ...wishOf(body) }));
    },
    async updateKey({ session, params, body, origin }) {
      await one(session, params.id);
      const wish = { ...(body.name === undefined ? {} : { name: body.name }), ...wishOf(body) };
      await accounts.as(origin).keys.update(asId<KeyId>(params.id), wish);
      return one(session, params.id);
    },
    async regenerateKey({ session, params, origin }) {
      await one(session, params.id);
      return shownOnce(await accounts.as(origin).keys.regenerate(asId<KeyId>(params.id)));
    },
    async revokeKey({ session, params, origin }) {
      await one(session, params.id);
      await accounts.as(origin).keys.revoke(asId<KeyId>(params.id));
      return one(session, params.id);
    },
  };
}

function shownOnce({ key: value, ...made }: KeyView & { readonly key: string }) {
  const { id, userId, name, state, lastFour, allowedModels, creditLimit, expiresAt, createdAt } = made;
  return { key: { id, userId, name, state, lastFour, allowedModels, creditLimit, expiresAt, createdAt }, value };
}

/** To a member the keys of others do not exist. */
function visibleTo({ role, id }: Session["user"]): { readonly userId?: UserId } {
  return role === "member" ? { userId: id } : {};
}
