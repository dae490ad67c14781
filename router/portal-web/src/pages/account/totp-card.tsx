/** Shows whether the second factor is on, and turns it off. */
import { useState } from "react";
import { useChange } from "../../api/queries.ts";
import { Button } from "../../elements/button.tsx";
import { CodeField, PasswordField } from "../../elements/credential-fields.tsx";
import { FormDialog, useDone } from "../../elements/form.tsx";
import { useTexts } from "../../messages/messages.ts";
import type { Profile } from "./password-card.tsx";
import { SetUpTotp } from "./set-up-totp.tsx";

export function TotpCard({ profile }: { readonly profile: Profile }) {
  const { t, format } = useTexts();
  const { totp } = t.account;
  const [dialog, setDialog] = useState<"set up" | "turn off">();
  const close = () => setDialog(undefined);
  return (
    <section className="card" aria-labelledby="totp">
      <h2 id="totp">{totp.title}</h2>
      <p className="soft">
        {profile.totp ? `${totp.on} ${totp.codesLeft(format.number(profile.recoveryCodesLeft))}` : totp.off}
      </p>
      <div className="actions">
        <Button onClick={() => setDialog(profile.totp ? "turn off" : "set up")}>
          {profile.totp ? totp.turnOff : totp.setUp}
        </Button>
      </div>
      {dialog === "set up" && <SetUpTotp onClose={close} />}
      {dialog === "turn off" && <TurnOff onClose={close} />}
    </section>
  );
}

function TurnOff({ onClose }: { readonly onClose: () => void }) {
  const { t } = useTexts();
  const { totp, password } = t.account;
  const done = useDone(onClose);
  const off = useChange("turnTotpOff", "profile");
  return (
    <FormDialog
      title={totp.offTitle}
      submit={totp.turnOff}
      kind="danger"
      change={off}
      onSubmit={({ password: typed, code }) =>
        off.mutate({ body: { password: typed!, code: code! } }, done(totp.offDone))
      }
      onClose={onClose}
    >
      <p>{totp.offLead}</p>
      <PasswordField label={password.current} autoFocus />
      <CodeField />
    </FormDialog>
  );
}
