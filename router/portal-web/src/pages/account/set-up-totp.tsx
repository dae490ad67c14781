/** Turns the second factor on: the password, the secret with a first code, the recovery codes. */
import { useChange } from "../../api/queries.ts";
import { Button } from "../../elements/button.tsx";
import { CopyButton } from "../../elements/copy-button.tsx";
import { Dialog } from "../../elements/dialog.tsx";
import { TextField } from "../../elements/field.tsx";
import { Form } from "../../elements/form.tsx";
import { useToast } from "../../elements/toast.tsx";
import { useTexts } from "../../messages/messages.ts";
import { QrCode } from "./qr-code.tsx";

export function SetUpTotp({ onClose }: { readonly onClose: () => void }) {
  const { t } = useTexts();
  const { totp } = t.account;
  const setUp = useChange("setUpTotp");
  const confirm = useChange("confirmTotp", "profile");
  const cancel = <Button onClick={onClose}>{t.shell.cancel}</Button>;
  if (confirm.data) return <RecoveryCodes codes={confirm.data.recoveryCodes} onClose={onClose} />;
  if (setUp.data)
    return (
      <Dialog key="secret" title={totp.setUpTitle} onClose={onClose}>
        <p>{totp.scanLead}</p>
        <QrCode text={setUp.data.uri} label={totp.qrCode} />
        <div className="secret">
          <code id="secret" aria-label={totp.secret}>
            {setUp.data.secret.replace(/(.{4})(?=.)/g, "$1 ")}
          </code>
          <CopyButton text={setUp.data.secret} shownIn="secret" />
        </div>
        <p>
          <a href={setUp.data.uri}>{totp.open}</a>
        </p>
        <Form
          submit={totp.confirm}
          busy={confirm.isPending}
          problem={confirm.error}
          actions={cancel}
          onSubmit={({ code }) => confirm.mutate({ body: { code: code!.replaceAll(" ", "") } })}
        >
          <TextField
            name="code"
            label={totp.code}
            autoComplete="one-time-code"
            className="code"
            minLength={6}
            maxLength={40}
            required
            autoFocus
          />
        </Form>
      </Dialog>
    );
  return (
    <Dialog key="password" title={totp.setUpTitle} onClose={onClose}>
      <p>{totp.proveLead}</p>
      <Form
        submit={totp.next}
        busy={setUp.isPending}
        problem={setUp.error}
        actions={cancel}
        onSubmit={({ password }) => setUp.mutate({ body: { password: password! } })}
      >
        <PasswordField />
      </Form>
    </Dialog>
  );
}

/** Shown once, so only the button closes them. */
function RecoveryCodes({ codes, onClose }: { readonly codes: readonly string[]; readonly onClose: () => void }) {
  const { totp } = useTexts().t.account;
  const say = useToast();
  return (
    <Dialog key="codes" title={totp.codesTitle} wide>
      <p>{totp.codesLead}</p>
      <ul className="codes" id="codes" aria-label={totp.codes}>
        {codes.map((code) => (
          <li key={code}>
            <code>{code}</code>
          </li>
        ))}
      </ul>
      <div className="actions end">
        <CopyButton text={codes.join("\n")} shownIn="codes" />
        <Button
          kind="primary"
          onClick={() => {
            say(totp.onDone);
            onClose();
          }}
        >
          {totp.stored}
        </Button>
      </div>
    </Dialog>
  );
}

export function PasswordField() {
  const { t } = useTexts();
  return (
    <TextField
      name="password"
      type="password"
      label={t.account.password.current}
      autoComplete="current-password"
      maxLength={1024}
      required
      autoFocus
    />
  );
}
