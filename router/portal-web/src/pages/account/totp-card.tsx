/** Whether the second factor is on, and turning it off. */
import { useState } from "react";
import { useChange } from "../../api/queries.ts";
import { Button } from "../../elements/button.tsx";
import { Dialog } from "../../elements/dialog.tsx";
import { TextField } from "../../elements/field.tsx";
import { Form } from "../../elements/form.tsx";
import { useToast } from "../../elements/toast.tsx";
import { useTexts } from "../../messages/messages.ts";
import type { Profile } from "./password-card.tsx";
import { PasswordField, SetUpTotp } from "./set-up-totp.tsx";

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
  const say = useToast();
  const off = useChange("turnTotpOff", "profile");
  return (
    <Dialog title={totp.offTitle} onClose={onClose}>
      <p>{totp.offLead}</p>
      <Form
        submit={totp.turnOff}
        kind="danger"
        busy={off.isPending}
        problem={off.error}
        actions={<Button onClick={onClose}>{t.shell.cancel}</Button>}
        onSubmit={({ password: typed, code }) =>
          off.mutate(
            { body: { password: typed!, code: code! } },
            {
              onSuccess: () => {
                say(totp.offDone);
                onClose();
              },
            },
          )
        }
      >
        <PasswordField />
        <TextField
          name="code"
          label={password.code}
          autoComplete="one-time-code"
          minLength={6}
          maxLength={40}
          required
        />
      </Form>
    </Dialog>
  );
}
