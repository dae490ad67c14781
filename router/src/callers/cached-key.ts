/** A cached key: read from the database once, and checked against the clock at each request. */
import { asId, type ModelId, type UserId } from "@weiche/shared/ids.ts";
import type { PromptQueries } from "../db/prompt-queries.ts";
import { bookedSpans } from "../subscriptions/subscription-rules.ts";
import type { Caller, Identity, KeyRefusal } from "./caller.ts";

export interface CachedKey extends Identity {
  readonly revoked: boolean;
  readonly expiresMs: number;
  readonly userBlocked: boolean;
  readonly accountBlocked: boolean;
  /** When the block by the credit limit of the key or its user ends, whichever is later. */
  readonly limitReachedUntilMs: number;
  readonly exhaustedUntilMs: number;
  /** The spans of the account's two latest packages. A span may have ended or not have begun. */
  readonly terms: readonly { readonly startMs: number; readonly endMs: number; readonly caller: Caller }[];
}

/** Checks key, package and quota, in the order of the API's conformance page. */
export function judge(key: CachedKey, nowMs: number): Caller | KeyRefusal {
  if (key.revoked) return { refused: "invalid_api_key", why: "revoked", of: key };
  if (key.expiresMs <= nowMs) return { refused: "invalid_api_key", why: "expired", of: key };
  if (key.userBlocked) return { refused: "invalid_api_key", why: "user-blocked", of: key };
  if (key.accountBlocked) return { refused: "invalid_api_key", why: "account-blocked", of: key };
  if (key.limitReachedUntilMs > nowMs) return { refused: "invalid_api_key", why: "blocked-by-limit", of: key };
  const term = key.terms.find(({ startMs, endMs }) => startMs <= nowMs && nowMs < endMs);
  if (!term) return { refused: "no_package", of: key };
  if (key.exhaustedUntilMs > nowMs) return { refused: "insufficient_quota", caller: term.caller };
  return term.caller;
}

interface Lookup {
  /** Number of the last change that the result includes. */
  readonly number: bigint;
  readonly key: CachedKey | undefined;
}

/** Reads a key by its hash, together with the number of the last change, in one snapshot. */
export function lookUpKey(prompt: PromptQueries, hash: string): Promise<Lookup> {
  return lookUp(prompt, "look-up-key", lookUpSql("api_keys k on k.hash = $1"), hash);
}

/**
 * Reads the key of a signed-in user's playground. It has no secret, its id is the user's, and only the user's restrictions
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
  const { number, keyModels, userModels, terms, ...key } = rows[0]!;
  if (key.keyId === null) return { number, key: undefined };
  const { accountId, userId, keyId } = key;
  const allowedModels = intersect(userModels, keyModels);
  const termsOf = ([state, startMs, endMs, rhythmMs, versions]: Row["terms"][number]) =>
    bookedSpans({ package: "", state, startMs, endMs: endMs ?? Infinity, rhythmMs }, versions).map((span) => {
      const { requestsPerMinute, parallelRequests } = span.booked;
      const caller = { accountId, userId, keyId, allowedModels, requestsPerMinute, parallelRequests };
      return { startMs: span.startMs, endMs: span.endMs, caller };
    });
  return { number, key: { ...key, terms: terms.flatMap(termsOf) } };
}

const lookUpSql = (keys: string) => `
  select c.number, k.id as "keyId", k.user_id as "userId", k.account_id as "accountId",
    k.revoked_at is not null as revoked, u.blocked as "userBlocked",
    a.blocked_at is not null as "accountBlocked",
    coalesce(${epochMs("k.expires_at")}, 'infinity') as "expiresMs",
    coalesce(${epochMs("greatest(k.limit_reached_until, u.limit_reached_until)")}, 0) as "limitReachedUntilMs",
    coalesce(${epochMs("a.exhausted_until")}, 0) as "exhaustedUntilMs",
    k.allowed_models as "keyModels", u.allowed_models as "userModels",
    array(select jsonb_build_array(s.state, ${epochMs("s.started_at")}, ${epochMs("s.ended_at")},
            ${epochMs("coalesce(s.rhythm_from, s.started_at)")},
            (select jsonb_agg(jsonb_build_object('effectiveFromMs', ${epochMs("v.effective_from")},
                'requestsPerMinute', v.requests_per_minute, 'parallelRequests', v.parallel_requests) order by v.effective_from)
              from package_terms v where v.package = s.package))
          from subscriptions s where s.account_id = a.id order by s.started_at desc limit 2) as terms
  from change_counter c
  left join ${keys}
  left join users u on u.id = k.user_id
  left join accounts a on a.id = k.account_id`;

function epochMs(column: string): string {
  return `(extract(epoch from ${column}) * 1000)::float8`;
}

/** If no key matches, all fields but `number` are null. */
interface Row extends Omit<CachedKey, "terms"> {
  readonly number: bigint;
  readonly keyModels: readonly string[] | null;
  readonly userModels: readonly string[] | null;
  readonly terms: readonly (readonly [
    state: "trial" | "active",
    startMs: number,
    endMs: number | null,
    rhythmMs: number,
    versions: readonly {
      readonly effectiveFromMs: number;
      readonly requestsPerMinute: number;
      readonly parallelRequests: number;
    }[],
  ])[];
}

function intersect(a: readonly string[] | null, b: readonly string[] | null): ReadonlySet<ModelId> | undefined {
  if (a === null && b === null) return undefined;
  const models = a === null || b === null ? (a ?? b)! : a.filter((model) => b.includes(model));
  return new Set(models.map(asId<ModelId>));
}
