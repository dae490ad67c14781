/** The dialog that asks for the password again while requests wait for a login. */
import { useState, useSyncExternalStore } from "react";
import { Dialog } from "../../elements/dialog.tsx";
import { useTexts } from "../../messages/messages.ts";
import { SignInForm } from "./sign-in-form.tsx";
import { loginGate } from "../../api/login-gate.ts";

export function ExpiredLogin({ email }: { readonly email: string }) {
  const { t } = useTexts();
  const isWaitedAt = useSyncExternalStore(loginGate.subscribe, loginGate.isWaitedAt);
  const [round, setRound] = useState(0);
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
          loginGate.open();
        }}
      />
      <p>
        <a href="/">{again.other}</a>
      </p>
    </Dialog>
  );
}
