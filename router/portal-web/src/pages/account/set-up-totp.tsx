/** Turns the second factor on: the password, the secret with a first code, the recovery codes. */
import encodeQR from "qr";
import { useChange } from "../../api/queries.ts";
import { Button } from "../../elements/button.tsx";
import { CopyButton } from "../../elements/copy-button.tsx";
import { Dialog } from "../../elements/dialog.tsx";
import { CodeField, PasswordField } from "../../elements/credential-fields.tsx";
import { FormDialog } from "../../elements/form.tsx";
import { useToast } from "../../elements/toast/toast.tsx";
import { useTexts } from "../../messages/messages.ts";

/** Width of the QR code's blank margin in modules. Some cameras need it. */
const border = 4;

export function SetUpTotp({ onClose }: { readonly onClose: () => void }) {
  const { t } = useTexts();
  const { totp } = t.account;
  const setUp = useChange("setUpTotp");
  const confirm = useChange("confirmTotp", "profile");
  if (confirm.data) return <RecoveryCodes codes={confirm.data.recoveryCodes} onClose={onClose} />;
  if (setUp.data)
    return (
      <FormDialog
        key="secret"
        title={totp.setUpTitle}
        submit={totp.confirm}
        change={confirm}
        onSubmit={({ code }) => confirm.mutate({ body: { code: code!.replaceAll(" ", "") } })}
        onClose={onClose}
      >
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
        <CodeField label={totp.code} className="code" autoFocus />
      </FormDialog>
    );
  return (
    <FormDialog
      key="password"
      title={totp.setUpTitle}
      submit={totp.next}
      change={setUp}
      onSubmit={({ password }) => setUp.mutate({ body: { password: password! } })}
      onClose={onClose}
    >
      <p>{totp.proveLead}</p>
      <PasswordField label={t.account.password.current} autoFocus />
    </FormDialog>
  );
}

/** Shows the recovery codes once, so only the button closes the dialog. */
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

/** Draws the code as one path: the content security policy forbids an image from a data: address and inline styles. */
function QrCode({ text, label }: { readonly text: string; readonly label: string }) {
  const modules = encodeQR(text, "raw", { border });
  const path = modules.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : []))).join("");
  return (
    // oxlint-disable-next-line jsx-a11y/prefer-tag-over-role
    <svg className="qr-code" viewBox={`0 0 ${modules.length} ${modules.length}`} role="img" aria-label={label}>
      <path d={path} />
    </svg>
  );
}
