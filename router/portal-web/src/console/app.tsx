/** Chooses between the sign-in by a link and the pages behind it. */
import { Suspense } from "react";
import { useLocation } from "wouter";
import { queryClient } from "../api/hooks.ts";
import { ProblemBox } from "../elements/problem-box.tsx";
import { Skeleton } from "../elements/loaded.tsx";
import { Frame, type FramedRoute } from "../shell/frame.tsx";
import { PageErrors } from "../shell/page-errors.tsx";
import { loadedPage } from "../shell/page-route.ts";
import { PreferenceSwitches } from "../shell/preference-switches.tsx";
import { Button } from "../elements/button.tsx";
import { useChange, useRead, type ConsoleSession } from "./api.ts";
import { session as sessionState, useHasEnded } from "./session.ts";
import { SignInPage } from "./sign-in-page.tsx";
import { useConsoleTexts } from "./texts.ts";

const pages = [
  { path: "/", name: "nodes", icon: "nodes", ...loadedPage(() => import("./nodes/nodes-page.tsx")) },
  { path: "/slots", name: "slots", icon: "models", ...loadedPage(() => import("./slots/slots-page.tsx")) },
  { path: "/accounts", name: "accounts", icon: "users", ...loadedPage(() => import("./accounts/accounts-page.tsx")) },
  { path: "/capacity", name: "capacity", icon: "usage", ...loadedPage(() => import("./capacity/capacity-page.tsx")) },
  {
    path: "/requests",
    name: "requests",
    icon: "requests",
    ...loadedPage(() => import("./requests/requests-page.tsx")),
  },
  {
    path: "/pipeline",
    name: "pipeline",
    icon: "pipeline",
    ...loadedPage(() => import("./pipeline/pipeline-page.tsx")),
  },
] as const satisfies readonly (Omit<FramedRoute, "title"> & { readonly name: string })[];

export function App() {
  const [path] = useLocation();
  return (
    <PageErrors>
      <Suspense fallback={<Skeleton />}>{path === "/sign-in" ? <SignInPage /> : <SignedIn />}</Suspense>
    </PageErrors>
  );
}

function SignedIn() {
  const hasEnded = useHasEnded();
  const read = useRead("showConsole", {}, { enabled: !hasEnded });
  if (hasEnded || read.error?.code === "login_required") return <SignInPage hasEnded={hasEnded} />;
  if (read.data) return <Console session={read.data} />;
  if (!read.error) return <Skeleton />;
  return (
    <main className="alone">
      <ProblemBox problem={read.error} onRetry={() => read.refetch()} />
    </main>
  );
}

function Console({ session }: { readonly session: ConsoleSession }) {
  const { c, format } = useConsoleTexts();
  const close = useChange("closeConsole");
  const routes = pages.map((page) => ({ ...page, title: c.pages[page.name] }));
  const end = () =>
    close.mutate(
      {},
      {
        onSettled() {
          queryClient.clear();
          sessionState.ended();
        },
      },
    );
  return (
    <Frame routes={routes} name={c.name}>
      <p className="console-session soft">
        {c.session(session.router, session.version, format.clock(Date.parse(session.endsAt)))}
      </p>
      <div className="console-controls">
        <PreferenceSwitches />
        <Button kind="quiet" busy={close.isPending} onClick={end}>
          {c.end}
        </Button>
      </div>
    </Frame>
  );
}
