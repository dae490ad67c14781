/** A user's own profile and settings. */
import type { UserId } from "@weiche/shared/ids.ts";
import { plainRow } from "../rights/plain-row.ts";
import { found } from "../rights/request-error.ts";
import type { Database } from "../db/database.ts";
import type { Language, Theme } from "../db/schema.ts";

export function createProfile({ kysely }: Database) {
  async function show(userId: UserId) {
    const shown = await kysely
      .selectFrom("users as u")
      .leftJoin("credentials as c", "c.userId", "u.id")
      .select(["u.email", "u.role", "u.language", "u.theme", "c.totpSince", "c.passwordSetAt", "c.lastLoginAt"])
      .select((eb) =>
        eb
          .selectFrom("recoveryCodes as r")
          .select((count) => count.fn.countAll<bigint>().as("left"))
          .whereRef("r.userId", "=", "u.id")
          .as("recoveryCodesLeft"),
      )
      .where("u.id", "=", userId)
      .executeTakeFirst();
    const { totpSince, recoveryCodesLeft, ...profile } = found(shown, "user", userId);
    return { ...plainRow(profile), totp: totpSince !== null, recoveryCodesLeft: Number(recoveryCodesLeft ?? 0) };
  }

  return {
    show,
    /** null restores the default: the browser's language, the system's theme. */
    async update(userId: UserId, wish: { language?: Language | null; theme?: Theme | null; checklistHidden?: true }) {
      if (Object.keys(wish).length > 0) await kysely.updateTable("users").set(wish).where("id", "=", userId).execute();
      return show(userId);
    },
  };
}
