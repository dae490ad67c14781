/** The frame of the portal's pages, with the navigation of the signed-in user. */
import { Link } from "wouter";
import { useTexts } from "../messages/messages.ts";
import { useMay, useSession } from "../session/session.ts";
import { Frame } from "./frame.tsx";
import type { SignedInRoute } from "./page-route.ts";
import { UserMenuButton } from "./user-menu-button.tsx";
import { useRead } from "../api/queries.ts";
import { Icon } from "../elements/icons.tsx";
import { unreadNotices } from "../session/unread-notices.ts";

/** Interval at which the number of unread notices is read. */
const refreshMs = 60_000;

export default function Shell({ routes: all }: { readonly routes: readonly SignedInRoute[] }) {
  const { t } = useTexts();
  const { account } = useSession();
  const may = useMay();
  const routes = all.filter(({ needs }) => may(needs)).map((route) => ({ ...route, title: t.shell.pages[route.name] }));
  return (
    <Frame routes={routes} name={account.name}>
      <NoticesBell />
      <UserMenuButton />
    </Frame>
  );
}

/** Shows the number of unread notices, and links to them. */
function NoticesBell() {
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
