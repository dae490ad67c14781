/** A key as the cache holds it: read from the database once, judged by the clock at each request. */
import type { PackageName } from "../db/schema.ts";
import { asId, type AccountId, type KeyId, type ModelId, type UserId } from "@weiche/shared/ids.ts";
import type { PromptQueries } from "../db/prompt-queries.ts";
import { packages } from "../subscriptions/packages.ts";
import type { Caller, Identity, KeyRefusal } from "./caller.ts";

export interface CachedKey extends Identity {
  readonly revoked: boolean;
  readonly expiresMs: number;
  readonly userBlocked: boolean;
  /** Credit-limit block of the key or of its user, whichever ends later. */
  readonly limitReachedUntilMs: number;
  readonly exhaustedUntilMs: number;
  /** The account's two latest packages; one of them may not have begun, or have ended. */
  readonly terms: readonly { readonly startMs: number; readonly endMs: number; readonly caller: Caller }[];
}

/** Checks in the order of the service contract: the key, the package, its quota. */
export function judge(key: CachedKey, nowMs: number): Caller | KeyRefusal {
  if (key.revoked) return { refused: "invalid_api_key", why: "revoked", of: key };
  if (key.expiresMs <= nowMs) return { refused: "invalid_api_key", why: "expired", of: key };
  if (key.userBlocked) return { refused: "invalid_api_key", why: "user-blocked", of: key };
  if (key.limitReachedUntilMs > nowMs) return { refused: "invalid_api_key", why: "blocked-by-limit", of: key };
  const term = key.terms.find(({ startMs, endMs }) => startMs <= nowMs && nowMs < endMs);
  if (!term) return { refused: "no_package", of: key };
  if (key.exhaustedUntilMs > nowMs) return { refused: "insufficient_quota", caller: term.caller };
  return term.caller;
}

export interface Lookup {
  /** Number of the last change that the answer includes. */
  readonly number: bigint;
  readonly key: CachedKey | undefined;
}

/** Reads a key by its hash, together with the number of the last change, in one snapshot. */
export function lookUpKey(prompt: PromptQueries, hash: string): Promise<Lookup> {
  return lookUp(prompt, "look-up-key", lookUpSql("api_keys k on k.hash = $1"), hash);
}

/**
 * The key of a signed-in user's test chat: it has no secret, its id is the user's, and only the user's restrictions
 * apply.
 */
export async function lookUpTestChat(prompt: PromptQueries, userId: UserId): Promise<CachedKey | undefined> {
  const settings = ["revoked_at", "limit_reached_until", "expires_at"].map((name) => `null::timestamptz as ${name}`);
  const itself = `select id, id as user_id, account_id, ${settings.join(", ")}, null::text[] as allowed_models from users`;
  const { key } = await lookUp(prompt, "look-up-test-chat", lookUpSql(`(${itself}) k on k.id = $1`), userId);
  return key;
}

async function lookUp(prompt: PromptQueries, name: string, text: string, value: string): Promise<Lookup> {
  const { rows } = await prompt.query<Row>({ name, text, values: [value] });
  const row = rows[0]!;
  return { number: row.number, key: row.key_id === null ? undefined : toCachedKey(row) };
}

const lookUpSql = (keys: string) => `
  select c.number, k.id as key_id, k.user_id, k.account_id, k.revoked_at is not null as revoked, u.blocked,
    ${epochMs("k.expires_at")} as expires_ms,
    ${epochMs("greatest(k.limit_reached_until, u.limit_reached_until)")} as limit_ms,
    ${epochMs("a.exhausted_until")} as exhausted_ms,
    k.allowed_models as key_models, u.allowed_models as user_models,
    array(select jsonb_build_array(s.package, ${epochMs("s.started_at")}, ${epochMs("s.ended_at")})
          from subscriptions s where s.account_id = a.id order by s.started_at desc limit 2) as terms
  from change_counter c
  left join ${keys}
  left join users u on u.id = k.user_id
  left join accounts a on a.id = k.account_id`;

function epochMs(column: string): string {
  return `(extract(epoch from ${column}) * 1000)::float8`;
}

interface Row {
  readonly number: bigint;
  readonly key_id: string | null;
  readonly user_id: string;
  readonly account_id: string;
  readonly revoked: boolean;
  readonly blocked: boolean;
  readonly expires_ms: number | null;
  readonly limit_ms: number | null;
  readonly exhausted_ms: number | null;
  readonly key_models: readonly string[] | null;
  readonly user_models: readonly string[] | null;
  readonly terms: readonly (readonly [PackageName, number, number | null])[];
}

function toCachedKey(row: Row): CachedKey {
  const identity = {
    accountId: asId<AccountId>(row.account_id),
    userId: asId<UserId>(row.user_id),
    keyId: asId<KeyId>(row.key_id!),
  };
  const allowedModels = intersect(row.user_models, row.key_models);
  return {
    ...identity,
    revoked: row.revoked,
    expiresMs: row.expires_ms ?? Infinity,
    userBlocked: row.blocked,
    limitReachedUntilMs: row.limit_ms ?? 0,
    exhaustedUntilMs: row.exhausted_ms ?? 0,
    terms: row.terms.map(([name, startMs, endMs]) => {
      const { requestsPerMinute, parallelRequests } = packages[name];
      return {
        startMs,
        endMs: endMs ?? Infinity,
        caller: { ...identity, allowedModels, requestsPerMinute, parallelRequests },
      };
    }),
  };
}

function intersect(a: readonly string[] | null, b: readonly string[] | null): ReadonlySet<ModelId> | undefined {
  if (a === null && b === null) return undefined;
  const models = a === null || b === null ? (a ?? b)! : a.filter((model) => b.includes(model));
  return new Set(models.map(asId<ModelId>));
}
