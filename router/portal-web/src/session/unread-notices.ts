/** The same question from the frame of the pages and from the overview, so that it is asked once. */
import type { Ask } from "../api/client.ts";

export const unreadNotices: Ask<"listNotices"> = { query: { unread: true, pageSize: 5 } };
