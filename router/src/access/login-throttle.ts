/**
 * Who may try again, and when: counted per person and network together, per person, per network and per account, in the
 * database. Attempts are counted before they are judged, so that many at once are not more than one after another.
 *
 * Nobody can lock a person out for good: guesses from one network fill that pair's bucket and stop there; and the bucket
 * of the person, which guesses from many networks fill, does not hold where the person has signed in before.
 */
import { hash } from "node:crypto";
import { sql } from "kysely";
import type { Clock } from "@weiche/shared/clock.ts";
import { normalEmail } from "../accounts/email-address.ts";
import { inTransaction, instantText, retryConflicts, type Database } from "../db/database.ts";
import { networkOf } from "./client-network.ts";
import { leaked, waitMs, type BucketRule } from "./leaky-bucket.ts";

/** What attempts are counted for: `code` is the second factor alone. */
export type Purpose = "login" | "code" | "register" | "reset" | "invite";

export interface LoginThrottle {
  /**
   * 0: go on, and it is counted. Else how long to wait, and nothing is. `whom`: the person's address, or the account for
   * `invite`; absent: the network alone counts.
   */
  take(purpose: Purpose, source: string, whom?: string): Promise<number>;
  /** It was no guess: nothing is held against anybody. */
  giveBack(purpose: Purpose, source: string, whom?: string): Promise<void>;
  /** The person proved to be who they are: nothing is held against them from this network. */
  recognise(source: string, email: string): Promise<void>;
}

const minuteMs = 60_000;
const rules: Readonly<Record<Purpose, { readonly [Kind in Subject["kind"]]?: BucketRule }>> = {
  login: {
    pair: { burst: 8, leakMs: 2 * minuteMs },
    person: { burst: 100, leakMs: 0.5 * minuteMs },
    network: { burst: 60, leakMs: 0.5 * minuteMs },
  },
  // Only who knows the password gets here: a year of guesses from everywhere finds a code with less than 3 %.
  code: { person: { burst: 10, leakMs: 60 * minuteMs } },
  // Every one of these sends a mail.
  reset: {
    person: { burst: 4, leakMs: 20 * minuteMs },
    network: { burst: 20, leakMs: 3 * minuteMs },
  },
  register: { network: { burst: 10, leakMs: 6 * minuteMs } },
  // Each of these may send a mail, and a new user tells whether somebody has the address: 30 at once, then 30 an hour.
  invite: { account: { burst: 30, leakMs: 2 * minuteMs } },
};
const knownMs = 90 * 86_400_000;

interface Subject {
  readonly kind: "pair" | "person" | "network" | "account";
  readonly key: string;
  readonly rule: BucketRule;
}

class Wait extends Error {
  readonly ms: number;
  constructor(ms: number) {
    super("too many attempts");
    this.ms = ms;
  }
}

export function createLoginThrottle(database: Database, clock: Clock): LoginThrottle {
  const { kysely } = database;

  async function count(subjects: readonly Subject[]): Promise<void> {
    const nowMs = clock.now();
    const values = subjects.map(({ key }) => ({ subject: key, level: 0, at: instantText(nowMs) }));
    await inTransaction(database, async (transaction) => {
      const rows = await transaction
        .insertInto("attempts")
        .values(values)
        .onConflict((conflict) => conflict.column("subject").doUpdateSet((eb) => ({ level: eb.ref("attempts.level") })))
        .returningAll()
        .execute();
      const rowOf = new Map(rows.map((row) => [row.subject, row]));
      const isKnown = rows.some(({ knownUntil }) => knownUntil !== null && knownUntil.epochMilliseconds > nowMs);
      const after = subjects.map(({ kind, key, rule }) => {
        const { level, at } = rowOf.get(key)!;
        const bucket = { level, atMs: at.epochMilliseconds };
        const wait = waitMs(bucket, rule, nowMs);
        if (wait > 0 && !(kind === "person" && isKnown)) throw new Wait(wait);
        return { subject: key, level: leaked(bucket, rule, nowMs) + 1, at: instantText(Math.max(nowMs, bucket.atMs)) };
      });
      await transaction
        .insertInto("attempts")
        .values(after)
        .onConflict((conflict) =>
          conflict
            .column("subject")
            .doUpdateSet((eb) => ({ level: eb.ref("excluded.level"), at: eb.ref("excluded.at") })),
        )
        .execute();
    });
  }

  async function uncount(subjects: readonly Subject[]): Promise<void> {
    const keys = subjects.map(({ key }) => key);
    const update = kysely.updateTable("attempts").set({ level: sql`greatest(0, level - 1)` });
    await retryConflicts(() => update.where("subject", "in", keys).execute());
  }

  return {
    async take(purpose, source, whom) {
      try {
        await count(subjectsOf(purpose, source, whom));
        return 0;
      } catch (error) {
        if (error instanceof Wait) return error.ms;
        throw error;
      }
    },
    giveBack: (purpose, source, whom) => uncount(subjectsOf(purpose, source, whom)),
    async recognise(source, email) {
      const nowMs = clock.now();
      const { key } = subjectsOf("login", source, email).find(({ kind }) => kind === "pair")!;
      const row = { level: 0, at: instantText(nowMs), knownUntil: instantText(nowMs + knownMs) };
      await kysely
        .insertInto("attempts")
        .values({ subject: key, ...row })
        .onConflict((conflict) => conflict.column("subject").doUpdateSet(row))
        .execute();
    },
  };
}

/** In the order in which their rows are locked. */
function subjectsOf(purpose: Purpose, source: string, whom: string | undefined): Subject[] {
  const network = networkOf(source);
  const person = whom === undefined ? undefined : normalEmail(whom);
  const ofOne = person === undefined ? {} : { person: [person], pair: [person, network], account: [person] };
  const parts = { network: [network], ...ofOne };
  return Object.entries(parts)
    .flatMap(([name, part]) => {
      const kind = name as Subject["kind"];
      const rule = rules[purpose][kind];
      return rule ? [{ kind, rule, key: hash("sha256", JSON.stringify([purpose, kind, ...part])) }] : [];
    })
    .toSorted((a, b) => (a.key < b.key ? -1 : 1));
}
