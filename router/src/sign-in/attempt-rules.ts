/**
 * Rate limits of sign-ins: decides in which leaky buckets an attempt counts. Pure.
 *
 *   in an open session        only the session's bucket
 *   from a known network      the bucket of person and network together, and the network's bucket
 *   from any other network    these two, and a bucket that all unknown networks share for this person
 *
 * So an attacker cannot lock a person out of open sessions, or out of networks of earlier sign-ins: guesses from other
 * networks fill other buckets. From all unknown networks together, a person's second factor can be guessed 16 times on the
 * first day and 6 times on each later day. Three of a million codes are valid at a time. So an attacker who knows the
 * password and guesses for a year succeeds with a probability of 0.7 %.
 */
import { hash } from "node:crypto";
import { normalEmail } from "../mail/email-address.ts";
import { networkOf, unknownAddress } from "../edge/client-network.ts";
import { leaked, waitMs, type Bucket, type BucketRule } from "./leaky-bucket.ts";

/** The purpose of an attempt. `code`: the code of the second factor; `link`: the token of a one-time link. */
export type Purpose = "login" | "code" | "link" | "register" | "reset" | "invite";

export interface Attempt {
  readonly source: string;
  /** The person's e-mail address, or the account's id for `invite`. Undefined if unknown. */
  readonly whom?: string | undefined;
  /** Undefined if the person is not signed in. */
  readonly sessionId?: string | undefined;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const rules: Readonly<Record<Purpose, { readonly [Kind in Subject["kind"]]?: BucketRule }>> = {
  login: {
    session: { burst: 8, leakMs: 2 * minuteMs },
    pair: { burst: 8, leakMs: 2 * minuteMs },
    person: { burst: 100, leakMs: 0.5 * minuteMs },
    network: { burst: 60, leakMs: 0.5 * minuteMs },
  },
  code: {
    session: { burst: 10, leakMs: hourMs },
    pair: { burst: 10, leakMs: hourMs },
    person: { burst: 10, leakMs: 4 * hourMs },
  },
  // A token of 256 bits cannot be guessed, so this only bounds the cost of lookups.
  link: { network: { burst: 30, leakMs: minuteMs } },
  // Each attempt sends a mail.
  reset: {
    person: { burst: 4, leakMs: 20 * minuteMs },
    network: { burst: 20, leakMs: 3 * minuteMs },
  },
  // An attempt may send a mail.
  register: {
    person: { burst: 4, leakMs: 20 * minuteMs },
    network: { burst: 10, leakMs: 6 * minuteMs },
  },
  // Each attempt may send a mail and reveals whether an address is used: 30 at once, then 30 per hour.
  invite: { account: { burst: 30, leakMs: 2 * minuteMs } },
};

/** The time after which every bucket is empty again. */
export const forgottenMs = Math.max(
  ...Object.values(rules).flatMap((kinds) => Object.values(kinds).map(({ burst, leakMs }) => burst * leakMs)),
);

export interface Subject {
  readonly kind: "session" | "pair" | "person" | "network" | "account";
  readonly key: string;
  readonly rule: BucketRule;
}

/**
 * Returns the buckets of an attempt, sorted by key, the order in which their rows are locked. Clients with an unknown
 * address share no bucket for sign-ins, because they would lock each other out. They share a bucket for attempts that send
 * a mail or look up a link, because these have no other bound.
 */
export function subjectsOf(purpose: Purpose, { source, whom, sessionId }: Attempt): Subject[] {
  const network = networkOf(source);
  const person = whom === undefined ? undefined : normalEmail(whom);
  const ofOne = person === undefined ? {} : { person: [person], pair: [person, network], account: [person] };
  const isInSession = sessionId !== undefined && rules[purpose].session !== undefined;
  const ofNetwork = network === unknownAddress && purpose === "login" ? {} : { network: [network] };
  const parts = isInSession ? { session: [sessionId] } : { ...ofNetwork, ...ofOne };
  return Object.entries(parts)
    .flatMap(([name, part]) => {
      const kind = name as Subject["kind"];
      const rule = rules[purpose][kind];
      return rule ? [{ kind, rule, key: hash("sha256", JSON.stringify([purpose, kind, ...part])) }] : [];
    })
    .toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

/**
 * Returns the keys of all buckets of a person, or of an account by its id: alone, together with each of these networks, and
 * in each of these sessions.
 */
export function attemptsAbout(
  whom: string,
  sources: readonly string[],
  sessionIds: readonly string[],
): readonly string[] {
  const attempts = [
    ...["", ...sources].map((source) => ({ source, whom })),
    ...sessionIds.map((sessionId) => ({ source: "", sessionId })),
  ];
  const subjects = (Object.keys(rules) as Purpose[]).flatMap((purpose) =>
    attempts.flatMap((attempt) => subjectsOf(purpose, attempt)),
  );
  return [...new Set(subjects.filter(({ kind }) => kind !== "network").map(({ key }) => key))];
}

export interface AttemptRow extends Bucket {
  /** For a pair of person and network: until when the network is known. */
  readonly knownUntilMs: number | null;
}

/** Decides an attempt. `waitMs` 0: it is admitted, and `after` has the new buckets. `isKnown`: session or network is known. */
export function judgeAttempt(
  subjects: readonly Subject[],
  rowOf: (key: string) => AttemptRow,
  nowMs: number,
): {
  readonly waitMs: number;
  readonly isKnown: boolean;
  readonly after: readonly ({ readonly key: string } & Bucket)[];
} {
  const isKnown = subjects.some(({ kind, key }) => kind === "session" || (rowOf(key).knownUntilMs ?? 0) > nowMs);
  const counting = subjects.filter(({ kind }) => kind !== "person" || !isKnown);
  const after = counting.map(({ key, rule }) => {
    const bucket = rowOf(key);
    return { key, level: leaked(bucket, rule, nowMs) + 1, atMs: Math.max(nowMs, bucket.atMs) };
  });
  return { waitMs: Math.max(...counting.map(({ key, rule }) => waitMs(rowOf(key), rule, nowMs))), isKnown, after };
}
