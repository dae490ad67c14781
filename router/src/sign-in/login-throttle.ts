/** Counts attempts in the database before they are checked, so that parallel attempts cannot exceed a limit. */
import { sql, type Kysely } from "kysely";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { inTransaction, instantText, retryConflicts, type Database } from "../db/database.ts";
import { inTime, isUnavailable } from "../db/failures.ts";
import type { Schema } from "../db/schema.ts";
import { unknownAddress } from "../edge/client-network.ts";
import { judgeAttempt, subjectsOf, type Attempt, type Purpose, type Subject } from "./attempt-rules.ts";
import { fewAtOnce } from "./few-at-once.ts";

export type LoginThrottle = ReturnType<typeof createLoginThrottle>;

export interface Taken {
  /** 0 if the attempt was admitted and counted. Otherwise the time to wait, and nothing was counted. */
  readonly waitMs: number;
  /** True in an open session, or from a network where the person has authenticated before. */
  readonly isKnown: boolean;
  /** Reverts the count, because the attempt was not a wrong guess. */
  giveBack(): Promise<void>;
}

const knownMs = 90 * 86_400_000;
/** Attempts for one person wait for each other's row locks. Three at once leave most database connections for other work. */
const atOnceMax = 3;
const waiting = { waitingMax: 256, waitMsMax: 10_000 };
const countMsMax = 2_000;

class Wait extends Error {
  readonly ms: number;
  constructor(ms: number) {
    super("too many attempts");
    this.ms = ms;
  }
}

export function createLoginThrottle(database: Database, clock: Clock) {
  const { kysely } = database;
  const few = fewAtOnce({ atOnceMax, ...waiting }, clock);

  /** Counts an attempt and returns the keys of its buckets. Throws `Wait` at a limit, which rolls the transaction back. */
  async function count(subjects: readonly Subject[]): Promise<{ keys: readonly string[]; isKnown: boolean }> {
    const nowMs = clock.now();
    const values = subjects.map(({ key }) => ({ subject: key, level: 0, at: instantText(nowMs) }));
    return inTransaction(database, async (transaction) => {
      const rows = await transaction
        .insertInto("attempts")
        .values(values)
        .onConflict((conflict) => conflict.column("subject").doUpdateSet((eb) => ({ level: eb.ref("attempts.level") })))
        .returningAll()
        .execute();
      const rowOf = new Map(
        rows.map(({ subject, level, at, knownUntil }) => [
          subject,
          { level, atMs: at.epochMilliseconds, knownUntilMs: knownUntil?.epochMilliseconds ?? null },
        ]),
      );
      const { waitMs, isKnown, after } = judgeAttempt(subjects, (key) => rowOf.get(key)!, nowMs);
      if (waitMs > 0) throw new Wait(waitMs);
      await transaction
        .insertInto("attempts")
        .values(after.map(({ key, level, atMs }) => ({ subject: key, level, at: instantText(atMs) })))
        .onConflict((conflict) =>
          conflict
            .column("subject")
            .doUpdateSet((eb) => ({ level: eb.ref("excluded.level"), at: eb.ref("excluded.at") })),
        )
        .execute();
      return { keys: after.map(({ key }) => key), isKnown };
    });
  }

  async function uncount(keys: readonly string[]): Promise<void> {
    const update = kysely.updateTable("attempts").set({ level: sql`greatest(0, level - 1)` });
    await retryConflicts(() => update.where("subject", "in", keys).execute());
  }

  return {
    async take(purpose: Purpose, attempt: Attempt): Promise<Taken> {
      const asker = { source: attempt.source, isKnown: attempt.sessionId !== undefined };
      const counting = () => inTime(clock, countMsMax, () => count(subjectsOf(purpose, attempt)));
      try {
        const { keys, isKnown } = await few(asker, counting);
        return { waitMs: 0, isKnown, giveBack: () => uncount(keys) };
      } catch (error) {
        if (error instanceof Wait) return { waitMs: error.ms, isKnown: false, giveBack: async () => {} };
        if (isUnavailable(error)) database.doubt();
        throw error;
      }
    },
    /**
     * Empties the buckets of person (`whom`, an e-mail address) and network, and makes the network known for 90 days. Call it
     * after a successful authentication, in the transaction of what the person does with it, if any. `purposes` has `code`
     * after a right code of the second factor.
     */
    async recognise(
      source: string,
      whom: string,
      purposes: readonly ("login" | "code")[],
      on: Kysely<Schema> = kysely,
    ): Promise<void> {
      const nowMs = clock.now();
      // All clients with an unknown address would become known.
      const knownUntil = source === unknownAddress ? null : instantText(nowMs + knownMs);
      const row = { level: 0, at: instantText(nowMs), knownUntil };
      const subjects = purposes.flatMap((purpose) => subjectsOf(purpose, { source, whom }));
      const pairs = subjects.filter(({ kind }) => kind === "pair");
      await on
        .insertInto("attempts")
        .values(pairs.map(({ key }) => ({ subject: key, ...row })).toSorted((a, b) => (a.subject < b.subject ? -1 : 1)))
        .onConflict((conflict) => conflict.column("subject").doUpdateSet(row))
        .execute();
    },
  };
}
