/** A page: its path, its code, and who may see it. */
import { lazy, type ComponentType } from "react";
import type { PagePath } from "../../../src/surface/portal/page-paths.ts";
import type { RouteName } from "../api/client.ts";
import type { IconName } from "../elements/icons.tsx";
import type { Messages } from "../messages/messages.ts";

/** A page whose code is fetched when it is needed. */
export interface LoadedPage {
  readonly Page: ComponentType;
  /** Fetches the page's code before it is shown. A failure comes up when it is shown. */
  readonly preload: () => void;
}

export interface PageRoute extends LoadedPage {
  readonly path: PagePath;
}

export interface SignedInRoute extends PageRoute {
  readonly name: keyof Messages["shell"]["pages"];
  readonly icon: IconName;
  /** Only users who may call this operation see the page. */
  readonly needs: RouteName;
  /** Whether the page is left out of the navigation. */
  readonly hidden?: boolean;
}

export function loadedPage(load: () => Promise<{ readonly default: ComponentType }>): LoadedPage {
  return { Page: lazy(load), preload: () => void load().catch(() => {}) };
}

export function pageRoute(path: PagePath, load: () => Promise<{ readonly default: ComponentType }>): PageRoute {
  return { path, ...loadedPage(load) };
}
