/** Handlers of notices, and of each user's read marks. */
import type { Session } from "../../sign-in/sessions.ts";
import { listNotices, markRead } from "../../accounts/notices.ts";
import type { Handlers } from "../server/add-routes.ts";
import type { noticesContract } from "../contract/notices.ts";
import { pageWindow, type Reply } from "../contract/route.ts";
import type { HandlerDeps } from "./handler-deps.ts";

type Items = Reply<(typeof noticesContract)["listNotices"]>["items"];

export function noticesHandlers({ database, clock }: HandlerDeps): Handlers<typeof noticesContract> {
  return {
    async listNotices({ session, accountId, query }) {
      const { page, pageSize, ...window } = pageWindow(query);
      const viewer = session ? viewerOf(session) : { accountId, seesAll: true };
      const { items, ...counts } = await listNotices(
        database,
        viewer,
        { ...window, unread: query.unread },
        clock.now(),
      );
      // `notices.ts` checks the facts of each kind when it writes a notice.
      return { items: items as unknown as Items, ...counts, page, pageSize };
    },
    async readNotices({ session, body }) {
      const viewer = viewerOf(session);
      await markRead(database, viewer, body.ids, clock.now());
      const { unread } = await listNotices(database, viewer, { limit: 0 }, clock.now());
      return { unread };
    },
  };
}

function viewerOf({ user }: Session) {
  return { accountId: user.accountId, userId: user.id, seesAll: user.role !== "member" };
}
