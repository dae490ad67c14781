/** The frame of all pages behind the sign-in: where one is, where one can go, and who one is. */
import { Suspense, useState } from "react";
import { Link, useLocation } from "wouter";
import { Button } from "../elements/button.tsx";
import { Icon, Mark } from "../elements/icons.tsx";
import { Skeleton } from "../elements/loaded.tsx";
import { Page } from "../elements/page.tsx";
import { ToastProvider } from "../elements/toast.tsx";
import { useTexts } from "../messages/messages.ts";
import { useMay, useSession } from "../session/session.ts";
import { NoticesBell } from "./notices-bell.tsx";
import type { SignedInRoute } from "./page-route.ts";
import { UserMenuButton } from "./user-menu-button.tsx";

export default function Shell({ routes: all }: { readonly routes: readonly SignedInRoute[] }) {
  const { t } = useTexts();
  const { account } = useSession();
  const may = useMay();
  const [path] = useLocation();
  const [isOpen, setOpen] = useState(false);
  const routes = all.filter(({ needs }) => may(needs));
  const route = routes.find((one) => one.path === path);
  return (
    <ToastProvider>
      <div className="shell">
        <a className="skip" href="#main">
          {t.shell.skip}
        </a>
        <header className="top">
          <Button
            kind="quiet"
            className="icon-only menu-button"
            aria-expanded={isOpen}
            aria-controls="pages"
            aria-label={isOpen ? t.shell.closeNavigation : t.shell.openNavigation}
            onClick={() => setOpen(!isOpen)}
          >
            <Icon name={isOpen ? "close" : "menu"} />
          </Button>
          <Link to="/" className="brand">
            <Mark /> Weiche
          </Link>
          <span className="account-name">{account.name}</span>
          <NoticesBell />
          <UserMenuButton />
        </header>
        <nav id="pages" className={isOpen ? "side open" : "side"} aria-label={t.shell.navigation}>
          {routes
            .filter(({ hidden }) => !hidden)
            .map((one) => (
              <NavigationLink key={one.path} route={one} isCurrent={one === route} onGo={() => setOpen(false)} />
            ))}
        </nav>
        <main id="main" tabIndex={-1}>
          <Suspense fallback={<Skeleton />}>
            {route ? <route.Page key={path} /> : <Page title={t.shell.notFound.title} lead={t.shell.notFound.lead} />}
          </Suspense>
        </main>
      </div>
    </ToastProvider>
  );
}

interface NavigationLinkProps {
  readonly route: SignedInRoute;
  readonly isCurrent: boolean;
  readonly onGo: () => void;
}

function NavigationLink({ route, isCurrent, onGo }: NavigationLinkProps) {
  const { t } = useTexts();
  return (
    <Link
      to={route.path}
      aria-current={isCurrent ? "page" : undefined}
      onClick={onGo}
      onPointerEnter={route.preload}
      onFocus={route.preload}
    >
      <Icon name={route.icon} />
      {t.shell.pages[route.name]}
    </Link>
  );
}
