/** Deletes expired sessions, links and attempts, and surplus notices, and retires dead keys. None has an effect any more. */
import { instantText, type Database } from "../db/database.ts";
import { forgottenMs } from "../sign-in/attempt-rules.ts";
import { dropOldNotices } from "./notices.ts";
import { retireOldKeys } from "./retired-keys.ts";
import { idleMsMax } from "../sign-in/sessions.ts";

/** How long a network from which somebody signed in is known. */
const placeMsMax = 180 * 86_400_000;

export async function sweepIdentity(database: Database, nowMs: number, deadKeyDays: number): Promise<void> {
  const { pool } = database;
  const [now, idle, forgotten] = [nowMs, nowMs - idleMsMax, nowMs - forgottenMs].map(instantText);
  await pool.query("delete from sessions where expires_at <= $1 or seen_at <= $2", [now, idle]);
  await pool.query("delete from registrations where expires_at <= $1", [now]);
  await pool.query("delete from password_resets where expires_at <= $1", [now]);
  await pool.query("delete from attempts where at <= $1 and (known_until is null or known_until <= $2)", [
    forgotten,
    now,
  ]);
  await pool.query("delete from known_places where seen_at <= $1", [instantText(nowMs - placeMsMax)]);
  await retireOldKeys(database, nowMs, deadKeyDays);
  await dropOldNotices(database);
}
