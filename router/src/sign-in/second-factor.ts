/**
 * The second factor of a person.
 *
 *   off ──set up──▶ set up ──a right code──▶ on ──password and code──▶ off
 *
 * Each code is valid once: the row stores the last code's time step, and a used recovery code is deleted.
 */
import type { Kysely, Selectable } from "kysely";
import type { UserId } from "@weiche/shared/ids.ts";
import { audited } from "../rights/audit-log.ts";
import { found, RequestError } from "../rights/request-error.ts";
import { inTransaction, instantText } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";
import type { IdentityContext } from "./identity-context.ts";
import { requireStillProven, type Evidence } from "./proven.ts";
import type { Session } from "./sessions.ts";
import { hashRecoveryCode, makeRecoveryCodes, makeTotpSecret, totpStep } from "./totp.ts";

type Credentials = Selectable<Schema["credentials"]>;

export function createSecondFactor(context: IdentityContext) {
  const { database, clock, throttle } = context;
  const { kysely } = database;

  async function useTotp(on: Kysely<Schema>, row: Credentials | undefined, code: string): Promise<boolean> {
    if (row?.totpSecret == null) return false;
    const step = totpStep(row.totpSecret, code, clock.now(), row.totpStep);
    if (step === undefined) return false;
    // Only one of several parallel requests with the same code succeeds.
    const taken = await on
      .updateTable("credentials")
      .set({ totpStep: step })
      .where("userId", "=", row.userId)
      .where("totpSecret", "=", row.totpSecret)
      .where((eb) => eb.or([eb("totpStep", "is", null), eb("totpStep", "<", step)]))
      .executeTakeFirst();
    return taken.numUpdatedRows === 1n;
  }

  async function useRecoveryCode(userId: UserId, code: string): Promise<boolean> {
    const used = kysely
      .deleteFrom("recoveryCodes")
      .where("userId", "=", userId)
      .where("codeHash", "=", hashRecoveryCode(code));
    return (await used.executeTakeFirst()).numDeletedRows === 1n;
  }

  return {
    /** Makes a secret that has no effect until `confirm`. Throws a `RequestError` if the factor is on, or `ProofIsOver`. */
    async setUp(evidence: Evidence) {
      const { userId } = evidence.proof;
      const user = kysely.selectFrom("users").select("email").where("id", "=", userId);
      const { email } = found(await user.executeTakeFirst(), "user", userId);
      const { secret, uri } = makeTotpSecret(email);
      await inTransaction(database, async (transaction) => {
        await requireStillProven(transaction, evidence);
        const set = await transaction
          .updateTable("credentials")
          .set({ totpSecret: secret, totpStep: null })
          .where("userId", "=", userId)
          .where("totpSince", "is", null)
          .executeTakeFirst();
        if (set.numUpdatedRows !== 1n) throw new RequestError("conflict", "the second factor is on already");
      });
      return { secret, uri };
    },

    /** Turns the factor on. Returns the recovery codes, which are shown only now. */
    async confirm(session: { id: string; user: Pick<Session["user"], "id" | "email"> }, source: string, code: string) {
      const { id: sessionId, user } = session;
      const { id: userId, email } = user;
      const before = await readCredentials(kysely, userId);
      if (before?.totpSince) throw new RequestError("conflict", "the second factor is on already");
      const taken = await throttle.take("code", { source, whom: email, sessionId });
      if (taken.waitMs > 0) return { kind: "throttled", waitMs: taken.waitMs } as const;
      if (!(await useTotp(kysely, before, code))) return { kind: "code-wrong" } as const;
      await taken.giveBack();
      const codes = makeRecoveryCodes();
      await audited(context, { action: "user.totp-on", on: { kind: "user", id: userId } }, async (transaction) => {
        const turnedOn = await transaction
          .updateTable("credentials")
          .set({ totpSince: instantText(clock.now()) })
          .where("userId", "=", userId)
          .where("totpSecret", "=", before!.totpSecret)
          .where("totpSince", "is", null)
          .executeTakeFirst();
        if (turnedOn.numUpdatedRows !== 1n)
          throw new RequestError("conflict", "the second factor was set up again meanwhile");
        await transaction
          .insertInto("recoveryCodes")
          .values(codes.map((each) => ({ userId, codeHash: hashRecoveryCode(each) })))
          .execute();
        await throttle.recognise(source, email, ["code"], transaction);
      });
      return { kind: "on", recoveryCodes: codes } as const;
    },

    /** Returns whether the code is right. A right code is consumed. */
    async use(userId: UserId, code: string): Promise<boolean> {
      return (
        (await useTotp(kysely, await readCredentials(kysely, userId), code)) || (await useRecoveryCode(userId, code))
      );
    },

    /** Turns the factor off; does nothing if it is off. If `evidence` is undefined, the operator turns it off. */
    turnOff: (userId: UserId, evidence?: Evidence) =>
      audited(context, { action: "user.totp-off", on: { kind: "user", id: userId } }, async (transaction) => {
        if (evidence) await requireStillProven(transaction, evidence);
        const off = { totpSecret: null, totpSince: null, totpStep: null };
        await transaction.updateTable("credentials").set(off).where("userId", "=", userId).execute();
        await transaction.deleteFrom("recoveryCodes").where("userId", "=", userId).execute();
      }),
  };
}

export async function readCredentials(kysely: Kysely<Schema>, userId: UserId): Promise<Credentials | undefined> {
  return kysely.selectFrom("credentials").selectAll().where("userId", "=", userId).executeTakeFirst();
}
