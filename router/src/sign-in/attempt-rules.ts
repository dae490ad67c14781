/**
 * Who may try again, and when: buckets of attempts, and which of them count. Pure.
 *
 *   in an open session        the session's bucket alone
 *   from a known network      that of person and network together, and the network's
 *   from any other network    the same, and the one that all other networks share for this person
 *
 * So nobody can lock a person out of their open sessions or of the networks where they signed in before: what others
 * guess, from however many networks, fills other buckets. From all of these networks together the codes of one person's
 * second factor are guessed 16 times on the first day and 6 times on each that follows. Of a million codes three are
 * right at a time: somebody who knows the password and guesses for a year finds one with a chance of 0.7 %.
 */
import { hash } from "node:crypto";
import { normalEmail } from "../mail/email-address.ts";
import { networkOf } from "../edge/client-network.ts";
import { leaked, waitMs, type Bucket, type BucketRule } from "./leaky-bucket.ts";

/** What attempts are counted for. `code`: the second factor alone; `link`: the token of a one-time link. */
export type Purpose = "login" | "code" | "link" | "register" | "reset" | "invite";

export interface Attempt {
  readonly source: string;
  /** The person's address, or the account for `invite`; absent: nobody in particular. */
  readonly whom?: string | undefined;
  /** Absent: whoever tries is not signed in. */
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
  // Nobody guesses 256 bits: this bounds what it costs us to look.
  link: { network: { burst: 30, leakMs: minuteMs } },
  // Every one of these sends a mail.
  reset: {
    person: { burst: 4, leakMs: 20 * minuteMs },
    network: { burst: 20, leakMs: 3 * minuteMs },
  },
  register: { network: { burst: 10, leakMs: 6 * minuteMs } },
  // Each of these may send a mail, and a new user tells whether somebody has the address: 30 at once, then 30 an hour.
  invite: { account: { burst: 30, leakMs: 2 * minuteMs } },
};

/** After so long every bucket is empty. */
export const forgottenMs = Math.max(
  ...Object.values(rules).flatMap((kinds) => Object.values(kinds).map(({ burst, leakMs }) => burst * leakMs)),
);

export interface Subject {
  readonly kind: "session" | "pair" | "person" | "network" | "account";
  readonly key: string;
  readonly rule: BucketRule;
}

/** In the order in which their rows are locked. */
export function subjectsOf(purpose: Purpose, { source, whom, sessionId }: Attempt): Subject[] {
  const network = networkOf(source);
  const person = whom === undefined ? undefined : normalEmail(whom);
  const ofOne = person === undefined ? {} : { person: [person], pair: [person, network], account: [person] };
  const isInSession = sessionId !== undefined && rules[purpose].session !== undefined;
  const parts = isInSession ? { session: [sessionId] } : { network: [network], ...ofOne };
  return Object.entries(parts)
    .flatMap(([name, part]) => {
      const kind = name as Subject["kind"];
      const rule = rules[purpose][kind];
      return rule ? [{ kind, rule, key: hash("sha256", JSON.stringify([purpose, kind, ...part])) }] : [];
    })
    .toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

export interface AttemptRow extends Bucket {
  /** Of a pair of person and network: until then the person may come from there whatever others do. */
  readonly knownUntilMs: number | null;
}

/** `isKnown`: in a session or from a known network. How long to wait, or 0 and what the buckets that count hold afterwards. */
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
