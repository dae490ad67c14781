/** A user's own profile and settings. */
import type { UserId } from "@weiche/shared/ids.ts";
import { mailTopics, type MailTopic } from "../mail/mail-topics.ts";
import { plainRow } from "../rights/plain-row.ts";
import { found } from "../rights/request-error.ts";
import type { Database } from "../db/database.ts";
import type { Language, Theme } from "../db/schema.ts";

/** A newer router may have stored other topics. */
function topicsIn(stored: readonly string[]): MailTopic[] {
  return mailTopics.filter((topic) => stored.includes(topic));
}

export function createProfile({ kysely }: Database, sendsMail: boolean) {
  async function show(userId: UserId) {
    const shown = await kysely
      .selectFrom("users as u")
      .leftJoin("credentials as c", "c.userId", "u.id")
      .select([
        "u.email",
        "u.name",
        "u.role",
        "u.language",
        "u.theme",
        "u.mailsOff",
        "c.totpSince",
        "c.passwordSetAt",
        "c.lastLoginAt",
      ])
      .select((eb) =>
        eb
          .selectFrom("recoveryCodes as r")
          .select((count) => count.fn.countAll<bigint>().as("left"))
          .whereRef("r.userId", "=", "u.id")
          .as("recoveryCodesLeft"),
      )
      .where("u.id", "=", userId)
      .executeTakeFirst();
    const { totpSince, recoveryCodesLeft, mailsOff, ...profile } = found(shown, "user", userId);
    return {
      ...plainRow(profile),
      mailsOff: sendsMail ? topicsIn(mailsOff) : null,
      totp: totpSince !== null,
      recoveryCodesLeft: Number(recoveryCodesLeft ?? 0),
    };
  }

  return {
    show,
    /** null restores the default: the browser's language, the system's theme. */
    async update(
      userId: UserId,
      wish: {
        name?: string | null;
        language?: Language | null;
        theme?: Theme | null;
        checklistHidden?: true;
        mailsOff?: MailTopic[];
      },
    ) {
      const name = typeof wish.name === "string" ? wish.name.trim() || null : wish.name;
      if (Object.keys(wish).length > 0)
        await kysely
          .updateTable("users")
          .set({ ...wish, name })
          .where("id", "=", userId)
          .execute();
      return show(userId);
    },
  };
}
