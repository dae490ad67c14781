/** Shows the number of unread notices, and links to them. */
import { Link } from "wouter";
import { useRead } from "../api/queries.ts";
import { Icon } from "../elements/icons.tsx";
import { useTexts } from "../messages/messages.ts";
import { unreadNotices } from "../session/unread-notices.ts";

const refreshMs = 60_000;

export function NoticesBell() {
  const { t, format } = useTexts();
  const unread = useRead("listNotices", unreadNotices, { refreshMs }).data?.unread ?? 0;
  return (
    <Link
      to="/notices"
      className="button quiet icon-only bell"
      aria-label={unread > 0 ? t.shell.notices(format.number(unread)) : t.shell.noticesNone}
    >
      <Icon name="notices" />
      {unread > 0 && <span className="bell-count number">{format.number(Math.min(unread, 99))}</span>}
    </Link>
  );
}
