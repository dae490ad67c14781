/** Deletes expired sessions, links and attempts. All of them are without effect before they are deleted. */
import { instantText, type Database } from "../db/database.ts";
import { forgottenMs } from "../sign-in/attempt-rules.ts";
import { idleMsMax } from "../sign-in/sessions.ts";

export async function sweepIdentity({ pool }: Pick<Database, "pool">, nowMs: number): Promise<void> {
  const [now, idle, forgotten] = [nowMs, nowMs - idleMsMax, nowMs - forgottenMs].map(instantText);
  await pool.query("delete from sessions where expires_at <= $1 or seen_at <= $2", [now, idle]);
  await pool.query("delete from password_resets where expires_at <= $1", [now]);
  await pool.query("delete from attempts where at <= $1 and (known_until is null or known_until <= $2)", [
    forgotten,
    now,
  ]);
}
