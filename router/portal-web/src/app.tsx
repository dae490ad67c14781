/** Chooses the page for an address: a public page, a page behind the sign-in, or the sign-in in its place. */
import { lazy, Suspense, useEffect } from "react";
import { useLocation } from "wouter";
import { useRead } from "./api/queries.ts";
import { queryClient } from "./api/hooks.ts";
import { ProblemBox } from "./elements/problem-box.tsx";
import { Skeleton } from "./elements/loaded.tsx";
import { SignInPage } from "./pages/sign-in/sign-in-page.tsx";
import { publicRoutes, signedInRoutes } from "./routes.tsx";
import { ExpiredLogin } from "./pages/sign-in/expired-login.tsx";
import { loginGate } from "./api/login-gate.ts";
import { forgetOthers } from "./session/kept-in-tab.ts";
import { SessionContext, type Session } from "./session/session.ts";
import { PageErrors } from "./shell/page-errors.tsx";
import { usePreferences } from "./session/preferences.tsx";

/** Loaded separately, because the sign-in needs no menus. */
const Shell = lazy(() => import("./shell/shell.tsx"));

export function App() {
  const [path] = useLocation();
  const open = publicRoutes.find((route) => route.path === path);
  return (
    <PageErrors>
      <Suspense fallback={<Skeleton />}>{open ? <open.Page /> : <SignedIn />}</Suspense>
    </PageErrors>
  );
}

function SignedIn() {
  const read = useRead("session", {});
  if (read.data) return <WithSession session={read.data} />;
  if (!read.error) return <Skeleton />;
  if (read.error.code === "login_required")
    return <SignInPage onSignedIn={() => void queryClient.invalidateQueries({ queryKey: ["session"] })} />;
  return (
    <main className="alone">
      <ProblemBox problem={read.error} onRetry={() => read.refetch()} />
    </main>
  );
}

function WithSession({ session }: { readonly session: Session }) {
  const preferences = usePreferences();
  const { language, theme } = session;
  const { id } = session.user;
  useEffect(() => {
    loginGate.isArmed = true;
    forgetOthers(id);
  }, [id]);
  // Applies the user's choice from another device.
  useEffect(() => {
    if (language && language !== preferences.language) preferences.setLanguage(language);
    if (theme && theme !== preferences.theme) preferences.setTheme(theme);
    // oxlint-disable-next-line react/exhaustive-deps -- only when the server says something new
  }, [language, theme]);
  return (
    <SessionContext value={session}>
      <Suspense fallback={<Skeleton />}>
        <Shell routes={signedInRoutes} />
      </Suspense>
      <ExpiredLogin email={session.user.email} />
    </SessionContext>
  );
}
