/** The frame of all pages behind a sign-in: the navigation and the bar at the top. */
import { Suspense, useState, type ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { Button, ButtonLink } from "../elements/button.tsx";
import { Icon, Mark, type IconName } from "../elements/icons.tsx";
import { Skeleton } from "../elements/loaded.tsx";
import { Page } from "../elements/page.tsx";
import { ToastProvider } from "../elements/toast/toast.tsx";
import { useTexts } from "../messages/messages.ts";
import type { LoadedPage } from "./page-route.ts";

export interface FramedRoute extends LoadedPage {
  readonly path: string;
  readonly icon: IconName;
  readonly title: string;
  /** Whether the page is left out of the navigation. */
  readonly hidden?: boolean;
}

interface FrameProps {
  readonly routes: readonly FramedRoute[];
  /** Elements beside the logo at the top. */
  readonly name: string;
  readonly children: ReactNode;
}

export function Frame({ routes, name, children }: FrameProps) {
  const { t } = useTexts();
  const [path] = useLocation();
  const [isOpen, setOpen] = useState(false);
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
          <span className="account-name">{name}</span>
          {children}
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
            {route ? (
              <route.Page key={path} />
            ) : (
              <Page title={t.shell.notFound.title} lead={t.shell.notFound.lead}>
                <div className="actions">
                  <ButtonLink to="/">{routes[0]!.title}</ButtonLink>
                </div>
              </Page>
            )}
          </Suspense>
        </main>
      </div>
    </ToastProvider>
  );
}

interface NavigationLinkProps {
  readonly route: FramedRoute;
  readonly isCurrent: boolean;
  readonly onGo: () => void;
}

function NavigationLink({ route, isCurrent, onGo }: NavigationLinkProps) {
  return (
    <Link
      to={route.path}
      aria-current={isCurrent ? "page" : undefined}
      onClick={onGo}
      onPointerEnter={route.preload}
      onFocus={route.preload}
    >
      <Icon name={route.icon} />
      {route.title}
    </Link>
  );
}
