/** Reads the unread notices with one request for both the pages' frame and the overview. */
import type { Ask } from "../api/client.ts";

export const unreadNotices: Ask<"listNotices"> = { query: { unread: true, pageSize: 5 } };
