/** Makes an account and shows its Owner's link. Its package is chosen by the Owner, or ordered with `weiche`. */
import { EmailField } from "../../elements/credential-fields.tsx";
import { TextField } from "../../elements/field.tsx";
import { FormDialog } from "../../elements/form.tsx";
import { LinkDialog } from "../../elements/link/link-dialog.tsx";
import { fieldText } from "../../messages/problem-text.ts";
import { useChange } from "../api.ts";
import { useConsoleTexts } from "../texts.ts";

export function NewAccountDialog({ onClose }: { readonly onClose: () => void }) {
  const texts = useConsoleTexts();
  const { create } = texts.c.accounts;
  const change = useChange("createAccount");
  const made = change.data;
  if (made)
    return (
      <LinkDialog
        title={create.made(made.name)}
        email={change.variables.body.ownerEmail}
        url={made.invitationUrl}
        mailed={made.mailed}
        onClose={onClose}
      />
    );
  const error = (param: string) => fieldText(change.error, param, texts);
  return (
    <FormDialog
      title={create.title}
      submit={create.submit}
      change={change}
      onClose={onClose}
      onSubmit={({ name = "", email = "" }) => change.mutate({ body: { name: name.trim(), ownerEmail: email.trim() } })}
    >
      <p className="soft">{create.lead}</p>
      <TextField
        name="name"
        label={create.name}
        error={error("name")}
        maxLength={200}
        autoComplete="off"
        required
        autoFocus
      />
      <EmailField label={create.email} error={error("ownerEmail")} autoComplete="off" />
    </FormDialog>
  );
}
