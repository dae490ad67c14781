/** The frame of the portal's pages, with the navigation of the signed-in user. */
import { useTexts } from "../messages/messages.ts";
import { useMay, useSession } from "../session/session.ts";
import { Frame } from "./frame.tsx";
import { NoticesBell } from "./notices-bell.tsx";
import type { SignedInRoute } from "./page-route.ts";
import { UserMenuButton } from "./user-menu-button.tsx";

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
