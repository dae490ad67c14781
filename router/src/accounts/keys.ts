/**
 * API keys of a user. Only `create` and `regenerate` return a key's value.
 *
 *   active ──time──▶ expired        active ◀──▶ blocked-by-limit (until the limit is raised or the period ends)
 *   active ──revoke──▶ revoked      active ◀──▶ user-blocked
 *   active ──regenerate──▶ revoked, and a new key with the same settings
 */
import { sql, type Selectable, type Transaction } from "kysely";
import { asId, uuidv7, type KeyId, type UserId } from "@weiche/shared/ids.ts";
import { hashApiKey, makeApiKey } from "../callers/api-key.ts";
import { instantText } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";
import type { AccountsContext } from "../rights/accounts-context.ts";
import { audited, type Deed } from "../rights/audit-log.ts";
import { plainRow } from "../rights/plain-row.ts";
import { found, RequestError } from "../rights/request-error.ts";
import { lockUser, mayChangeKey, mayRevokeKey, requireRight } from "../rights/rights.ts";
import { retireSurplus } from "./retired-keys.ts";
import { restrictionColumns, type Restrictions } from "./users.ts";

export type KeyView = ReturnType<typeof viewKey>;

export interface KeyWish extends Restrictions {
  readonly name?: string;
  /** null: the key never expires. */
  readonly expiresMs?: number | null;
}

/** Checked with the user's row locked. A database constraint cannot check it, because expiry depends on the time. */
export const activeKeysMax = 25;

type KeyRow = Selectable<Schema["apiKeys"]>;
type UserRow = Selectable<Schema["users"]>;

export function createKeys(context: AccountsContext) {
  const { clock } = context;

  /** Runs `work` with the row of the key's user locked, so that no key of this user changes meanwhile. */
  function withKey<T extends { readonly id: KeyId }>(
    id: KeyId,
    deed: Omit<Deed, "on">,
    may: typeof mayChangeKey,
    work: (transaction: Transaction<Schema>, key: KeyRow, user: UserRow) => Promise<T>,
  ) {
    const locked = async (transaction: Transaction<Schema>) => {
      const select = transaction.selectFrom("apiKeys").selectAll().where("id", "=", id);
      const { userId } = found(await select.executeTakeFirst(), "key", id);
      const user = await lockUser(transaction, userId);
      const object = { kind: "key", id, accountId: user.accountId } as const;
      await requireRight(context, transaction, object, (actor) => may(actor, { userId }));
      return work(transaction, found(await select.executeTakeFirst(), "key", id), user);
    };
    return audited(context, { ...deed, on: { kind: "key", id } }, locked, theKey);
  }

  return {
    create: (userId: UserId, wish: KeyWish & { readonly name: string }) =>
      audited(
        context,
        { action: "key.create", on: { kind: "user", id: userId }, details: withoutName(wish) },
        async (transaction) => {
          const nowMs = clock.now();
          const user = await lockUser(transaction, userId);
          const object = { kind: "user", id: userId, accountId: user.accountId } as const;
          await requireRight(context, transaction, object, (actor) => mayChangeKey(actor, { userId }));
          requireAhead(wish.expiresMs, nowMs);
          if ((await livingKeys(transaction, userId, nowMs)) >= activeKeysMax)
            throw new RequestError("conflict", `the user has ${activeKeysMax} active keys already`);
          return insertKey(transaction, user, {
            name: wish.name.trim(),
            allowedModels: wish.allowedModels ? [...wish.allowedModels] : null,
            creditLimit: wish.creditLimit ?? null,
            expiresAt: wish.expiresMs == null ? null : Temporal.Instant.fromEpochMilliseconds(wish.expiresMs),
          });
        },
        theKey,
      ),

    update: (id: KeyId, wish: KeyWish) =>
      withKey(
        id,
        { action: "key.update", details: withoutName(wish) },
        mayChangeKey,
        async (transaction, key, user) => {
          const nowMs = clock.now();
          requireLiving(key, user, nowMs);
          requireAhead(wish.expiresMs, nowMs);
          const { name, expiresMs } = wish;
          const changed = await transaction
            .updateTable("apiKeys")
            .set({
              ...restrictionColumns(wish),
              name: name?.trim(),
              expiresAt: typeof expiresMs === "number" ? instantText(expiresMs) : expiresMs,
            })
            .where("id", "=", id)
            .returningAll()
            .executeTakeFirstOrThrow();
          return viewKey(changed, user, nowMs);
        },
      ),

    regenerate: (id: KeyId) =>
      withKey(
        id,
        { action: "key.regenerate", details: { replaces: id } },
        mayChangeKey,
        async (transaction, key, user) => {
          const nowMs = clock.now();
          requireLiving(key, user, nowMs);
          const successor = await insertKey(transaction, user, key);
          await transaction
            .updateTable("apiKeys")
            .set({ revokedAt: instantText(nowMs), regeneratedAs: successor.id })
            .where("id", "=", id)
            .execute();
          return successor;
        },
      ),

    /** Does nothing if the key is revoked already. */
    revoke: (id: KeyId) =>
      withKey(id, { action: "key.revoke" }, mayRevokeKey, async (transaction, key, user) => {
        const nowMs = clock.now();
        const revokedAt = key.revokedAt ?? Temporal.Instant.fromEpochMilliseconds(nowMs);
        const update = transaction.updateTable("apiKeys").set({ revokedAt: revokedAt.toString() }).where("id", "=", id);
        if (!key.revokedAt) await update.execute();
        return viewKey({ ...key, revokedAt }, user, nowMs);
      }),
  };

  type Settings = Pick<KeyRow, "name" | "allowedModels" | "creditLimit" | "expiresAt">;

  async function insertKey(transaction: Transaction<Schema>, user: UserRow, settings: Settings) {
    const key = makeApiKey();
    const nowMs = clock.now();
    const row = await transaction
      .insertInto("apiKeys")
      .values({
        id: asId<KeyId>(uuidv7(clock)),
        accountId: user.accountId,
        userId: user.id,
        hash: hashApiKey(key),
        lastFour: key.slice(-4),
        name: settings.name,
        allowedModels: settings.allowedModels,
        creditLimit: settings.creditLimit,
        expiresAt: settings.expiresAt?.toString() ?? null,
        createdAt: instantText(nowMs),
      })
      .returningAll()
      .executeTakeFirstOrThrow();
    await retireSurplus(transaction, user.id, nowMs);
    return { ...viewKey(row, user, nowMs), key };
  }
}

/** Counts the user's keys that are neither revoked nor expired. */
async function livingKeys(transaction: Transaction<Schema>, userId: UserId, nowMs: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from api_keys
    where user_id = ${userId} and ${isLiving(nowMs)}`.execute(transaction);
  return rows[0]!.count;
}

/** SQL condition: a row of `api_keys` is neither revoked nor expired. */
export function isLiving(nowMs: number) {
  return sql<boolean>`(revoked_at is null and (expires_at is null or expires_at > ${instantText(nowMs)}))`;
}

/** Removes the key's name from the details for the audit log: it may name a person, and the log outlives the account. */
function withoutName({ name, ...wish }: KeyWish): object {
  return { ...wish, named: name !== undefined || undefined };
}

function theKey({ id }: { readonly id: KeyId }) {
  return { kind: "key", id } as const;
}

/** All states, ordered from usable to revoked. */
export const keyStates = ["active", "blocked-by-limit", "user-blocked", "expired", "revoked"] as const;

export type KeyState = (typeof keyStates)[number];

export function keyState(key: KeyRow, user: UserRow, nowMs: number): KeyState {
  const lastsUntil = (instant: Temporal.Instant | null) => instant !== null && instant.epochMilliseconds > nowMs;
  if (key.revokedAt) return "revoked";
  if (key.expiresAt && !lastsUntil(key.expiresAt)) return "expired";
  if (user.blocked) return "user-blocked";
  if (lastsUntil(key.limitReachedUntil) || lastsUntil(user.limitReachedUntil)) return "blocked-by-limit";
  return "active";
}

/** These two states are final. */
function isOver(state: KeyState): boolean {
  return state === "revoked" || state === "expired";
}

function requireLiving(key: KeyRow, user: UserRow, nowMs: number): void {
  const state = keyState(key, user, nowMs);
  if (isOver(state)) throw new RequestError("conflict", `the key is ${state}`);
}

function requireAhead(expiresMs: number | null | undefined, nowMs: number): void {
  if (typeof expiresMs === "number" && expiresMs <= nowMs)
    throw new RequestError("invalid", "the expiry is in the past");
}

function viewKey(key: KeyRow, user: UserRow, nowMs: number) {
  const { id, accountId, userId, name, lastFour, allowedModels, creditLimit, expiresAt, createdAt } = key;
  const state = keyState(key, user, nowMs);
  return plainRow({ id, accountId, userId, name, state, lastFour, allowedModels, creditLimit, expiresAt, createdAt });
}
