/** Handlers of API keys. Members see their own keys, all others the account's. */
import { asId, type KeyId, type UserId } from "@weiche/shared/ids.ts";
import type { Session } from "../../sign-in/sessions.ts";
import { countKeys, listKeys } from "../../accounts/key-list.ts";
import type { KeyView, KeyWish } from "../../accounts/keys.ts";
import { found, RequestError } from "../../rights/request-error.ts";
import { readInstant } from "../server/query.ts";
import type { Call, Handlers } from "../server/add-routes.ts";
import type { keysContract } from "../contract/keys.ts";
import { pageWindow } from "../contract/route.ts";
import { readRestrictions } from "./users.ts";
import type { HandlerDeps } from "./handler-deps.ts";

export function keysHandlers({ accounts, database, clock, models }: HandlerDeps): Handlers<typeof keysContract> {
  const one = async ({ session, accountId }: Asked, id: string) => {
    const filter = { id: asId<KeyId>(id), ...visibleTo(session) };
    const page = { limit: 1, offset: 0, sort: "name", order: "asc" } as const;
    const { items } = await listKeys(database, accountId, filter, page, clock.now());
    return found(items[0], "key", id);
  };
  const wishOf = ({ expiresAt, ...wish }: KeySettings): KeyWish => ({
    ...readRestrictions(wish, models()),
    expiresMs: typeof expiresAt === "string" ? readInstant(expiresAt, "expiresAt") : expiresAt,
  });
  return {
    async listKeys({ session, accountId, query }) {
      const { page, pageSize, ...window } = pageWindow(query);
      const { sort = "name", order = "asc", userId, ...wish } = query;
      const visible = visibleTo(session);
      const filter = { ...wish, userId: userId === undefined ? undefined : asId<UserId>(userId), ...visible };
      const nowMs = clock.now();
      const counts = await countKeys(database, accountId, visible.userId, session?.user.id, nowMs);
      if (userId !== undefined && filter.userId !== userId) return { items: [], total: 0, page, pageSize, ...counts };
      const list = await listKeys(database, accountId, filter, { ...window, sort, order }, nowMs);
      return { ...list, page, pageSize, ...counts };
    },
    showKey: (call) => one(call, call.params.id),
    async createKey({ session, body, origin }) {
      const userId = body.userId ?? session?.user.id;
      if (userId === undefined) throw new RequestError("invalid", "userId is missing");
      const wish = { name: body.name, ...wishOf(body) };
      return shownOnce(await accounts.as(origin).keys.create(asId<UserId>(userId), wish));
    },
    async updateKey(call) {
      const { params, body, origin } = call;
      await one(call, params.id);
      await accounts.as(origin).keys.update(asId<KeyId>(params.id), { name: body.name, ...wishOf(body) });
      return one(call, params.id);
    },
    async regenerateKey(call) {
      await one(call, call.params.id);
      return shownOnce(await accounts.as(call.origin).keys.regenerate(asId<KeyId>(call.params.id)));
    },
    async revokeKey(call) {
      await one(call, call.params.id);
      await accounts.as(call.origin).keys.revoke(asId<KeyId>(call.params.id));
      return one(call, call.params.id);
    },
  };
}

type Asked = Pick<Call<typeof keysContract.showKey>, "session" | "accountId">;

type KeySettings = Parameters<typeof readRestrictions>[0] & { readonly expiresAt?: string | null };

function shownOnce({ key: value, accountId: _account, ...key }: KeyView & { readonly key: string }) {
  return { key, value };
}

/** Restricts members to their own keys. For a member, keys of others do not exist. */
function visibleTo(session: Session | undefined): { readonly userId?: UserId } {
  return session?.user.role === "member" ? { userId: session.user.id } : {};
}
