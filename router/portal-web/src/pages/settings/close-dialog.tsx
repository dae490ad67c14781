/** Asks for the account's name and the own password, and closes the account. */
import { useState } from "react";
import type { Answer } from "../../api/client.ts";
import { useChange, useRead } from "../../api/queries.ts";
import { CodeField, PasswordField } from "../../elements/credential-fields.tsx";
import { TextField } from "../../elements/field.tsx";
import { FormDialog } from "../../elements/form.tsx";
import { fieldText } from "../../messages/problem-text.ts";
import { useTexts } from "../../messages/messages.ts";
import { useSession } from "../../session/session.ts";

export type OwnAccount = Answer<"showOwnAccount">;

interface CloseDialogProps {
  readonly account: OwnAccount;
  readonly onClose: () => void;
}

export function CloseDialog({ account: { name, goes, stays }, onClose }: CloseDialogProps) {
  const texts = useTexts();
  const { close } = texts.t.settings;
  const { user } = useSession();
  const profile = useRead("profile", {});
  const change = useChange("closeAccount");
  const [typed, setTyped] = useState("");
  const { number } = texts.format;
  return (
    <FormDialog
      title={close.title}
      submit={close.submit}
      kind="danger"
      change={change}
      disabled={typed.trim() !== name}
      onClose={onClose}
      onSubmit={({ password, code }) =>
        change.mutate(
          { body: { name, password: password!, code: code || undefined } },
          { onSuccess: () => location.assign("/") },
        )
      }
    >
      <ul className="explained">
        <li>{close.removed(number(goes.users), number(goes.keys))}</li>
        <li>{close.ends}</li>
        <li>{close.kept(number(stays.invoices))}</li>
      </ul>
      <p>{close.download}</p>
      <TextField
        label={close.confirm(name)}
        error={fieldText(change.error, "name", texts) && close.wrongName}
        value={typed}
        onChange={({ target }) => setTyped(target.value)}
        autoComplete="off"
        autoFocus
      />
      <input type="hidden" name="username" autoComplete="username" value={user.email} readOnly />
      <PasswordField error={fieldText(change.error, "password", texts)} />
      {profile.data?.totp && <CodeField />}
    </FormDialog>
  );
}
