/**
 * Authenticates a person by password, and by a code if the second factor is on. Attempts are throttled before anything is
 * hashed. A known and an unknown address cost the same hashes and database queries, so that timing does not reveal which
 * addresses exist.
 */
import { ApiError } from "@weiche/shared/errors.ts";
import { normalEmail } from "../mail/email-address.ts";
import type { Attempt } from "./attempt-rules.ts";
import type { LoginOutcome, IdentityContext } from "./identity-context.ts";
import type { Taken } from "./login-throttle.ts";
import { normalPassword } from "./password-rules.ts";
import type { Proven } from "./proven.ts";
import { createSecondFactor } from "./second-factor.ts";

export interface Claim {
  readonly email: string;
  readonly password: string;
  /** A code of the authenticator, or a recovery code. */
  readonly code?: string | undefined;
}

export type Unproven =
  | { readonly kind: Exclude<LoginOutcome, "signed-in" | "throttled" | "overloaded"> }
  | { readonly kind: "throttled"; readonly waitMs: number };

/** The origin of a claim. Wrong guesses in an open session count only against this session. */
export type ClaimedFrom = Pick<Attempt, "source" | "sessionId">;

export async function prove(context: IdentityContext, claim: Claim, from: ClaimedFrom): Promise<Proven | Unproven> {
  const { throttle, events } = context;
  const attempt = { source: from.source, sessionId: from.sessionId, whom: claim.email };
  const taken = await throttle.take("login", attempt).catch(reportOverload(context));
  const { waitMs } = taken;
  const verdict = waitMs > 0 ? tooMany(waitMs) : await judge(context, claim, attempt, taken);
  if (verdict.kind !== "proven") events.loginFinished(verdict.kind);
  if (waitMs > 0) return verdict;
  const isGuess = verdict.kind === "wrong" || verdict.kind === "code-wrong";
  if (isGuess) await countFailure(context, claim.email);
  else await taken.giveBack();
  if (verdict.kind === "proven")
    await throttle.recognise(from.source, claim.email, verdict.totpSecret === null ? ["login"] : ["login", "code"]);
  return verdict;
}

/** Returns a handler that reports overload if the work was refused because too many wait, and rethrows. */
function reportOverload({ events }: IdentityContext): (error: unknown) => never {
  return (error) => {
    if (error instanceof ApiError) events.loginFinished("overloaded");
    throw error;
  };
}

function tooMany(waitMs: number): Unproven {
  return { kind: "throttled", waitMs };
}

async function judge(
  context: IdentityContext,
  claim: Claim,
  attempt: Attempt,
  taken: Taken,
): Promise<Proven | Unproven> {
  const { database, hashing, throttle } = context;
  const row = await database.kysely
    .selectFrom("users as u")
    .leftJoin("credentials as c", "c.userId", "u.id")
    .select(["u.id", "u.blocked", "c.password", "c.totpSince", "c.totpSecret", "c.failedLogins"])
    .where("u.email", "=", normalEmail(claim.email))
    .executeTakeFirst();
  const stored = row?.password ?? undefined;
  const by = { source: attempt.source, isKnown: taken.isKnown };
  const isRight = await hashing.verify(stored, normalPassword(claim.password), by).catch(async (error: unknown) => {
    if (error instanceof ApiError) await taken.giveBack();
    return reportOverload(context)(error);
  });
  if (!row || !stored || !isRight) return { kind: "wrong" };
  if (row.blocked) return { kind: "blocked" };
  if (row.totpSince) {
    if (claim.code === undefined) return { kind: "code-required" };
    const code = await throttle.take("code", attempt);
    if (code.waitMs > 0) return tooMany(code.waitMs);
    if (!(await createSecondFactor(context).use(row.id, claim.code))) return { kind: "code-wrong" };
    await code.giveBack();
  }
  const totpSecret = row.totpSince ? row.totpSecret : null;
  return { kind: "proven", userId: row.id, stored, totpSecret, failedLogins: row.failedLogins ?? 0 };
}

/** Counts a failure with the same statement for a known and an unknown address, so that timing does not differ. */
async function countFailure({ database }: IdentityContext, email: string): Promise<void> {
  await database.kysely
    .updateTable("credentials")
    .set((eb) => ({ failedLogins: eb("failedLogins", "+", 1) }))
    .where("userId", "=", (eb) => eb.selectFrom("users").select("id").where("email", "=", normalEmail(email)))
    .execute();
}
