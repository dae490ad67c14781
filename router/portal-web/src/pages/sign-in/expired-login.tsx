/** The dialog that asks for the password again while requests wait for a login. */
import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { useLocation } from "wouter";
import { queryClient } from "../../api/hooks.ts";
import { Dialog } from "../../elements/dialog.tsx";
import { useTexts } from "../../messages/messages.ts";
import { SignInForm } from "./sign-in-form.tsx";
import { loginGate } from "../../api/login-gate.ts";

export function ExpiredLogin({ email }: { readonly email: string }) {
  const { t } = useTexts();
  const isWaitedAt = useSyncExternalStore(loginGate.subscribe, loginGate.isWaitedAt);
  const [round, setRound] = useState(0);
  const [path] = useLocation();
  const renewedAt = useRef<string>(undefined);
  // The role may have changed. The current page stays with its form, and the next page uses the new role.
  useEffect(() => {
    if (renewedAt.current === undefined || renewedAt.current === path) return;
    renewedAt.current = undefined;
    void queryClient.invalidateQueries({ queryKey: ["session"] });
  }, [path]);
  if (!isWaitedAt) return null;
  const { again } = t.signIn;
  return (
    <Dialog title={again.title}>
      <p>{again.lead}</p>
      <SignInForm
        key={round}
        email={email}
        onSignedIn={() => {
          setRound(round + 1);
          renewedAt.current = path;
          loginGate.open();
        }}
      />
      <p>
        <a href="/">{again.other}</a>
      </p>
    </Dialog>
  );
}
