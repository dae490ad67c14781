/** The form for a user's role and limits, to invite or change a user. */
import { useState } from "react";
import type { Answer, Ask } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import { CreditsField } from "../../elements/credits-field.tsx";
import { EmailField } from "../../elements/credential-fields.tsx";
import { SelectField } from "../../elements/field.tsx";
import { FormDialog, type FormDialogProps } from "../../elements/form.tsx";
import { ModelChoice } from "../../elements/model-choice.tsx";
import { fieldText } from "../../messages/problem-text.ts";
import { useTexts } from "../../messages/messages.ts";
import { useSession } from "../../session/session.ts";

export type ListedUser = Answer<"listUsers">["items"][number];
type Wish = Omit<Ask<"createUser">["body"], "email">;
type Role = ListedUser["role"];

interface UserFormProps extends Omit<FormDialogProps, "onSubmit"> {
  /** The user to change. If undefined, a new user is invited. */
  readonly before?: ListedUser;
  readonly onSubmit: (email: string, wish: Wish) => void;
}

export function UserForm({ before, onSubmit, ...dialog }: UserFormProps) {
  const texts = useTexts();
  const { t } = texts;
  const { form } = t.users;
  const session = useSession();
  const error = (param: string) => fieldText(dialog.change.error, param, texts);
  const models = useRead("listModels", {});
  const [chosen, setChosen] = useState(before?.allowedModels ?? null);
  const [role, setRole] = useState<Role>(before?.role ?? "member");
  // Only Owners make Owners.
  const roles =
    session.user.role === "owner" ? (["member", "admin", "owner"] as const) : (["member", "admin"] as const);
  return (
    <FormDialog
      {...dialog}
      onSubmit={({ email, limit }) =>
        onSubmit(before?.email ?? email!.trim(), {
          role,
          allowedModels: chosen && [...chosen],
          creditLimit: limit || null,
        })
      }
    >
      {!before && <EmailField label={form.email} error={error("email")} autoComplete="off" autoFocus />}
      <SelectField
        label={form.role}
        hint={form.roleHints[role]}
        error={error("role")}
        value={role}
        disabled={before?.id === session.user.id}
        onChange={({ target }) => setRole(target.value as Role)}
      >
        {roles.map((one) => (
          <option key={one} value={one}>
            {t.shell.roles[one]}
          </option>
        ))}
      </SelectField>
      <ModelChoice
        legend={form.models}
        every={form.every}
        only={form.only}
        models={models.data?.items.map(({ id }) => id) ?? []}
        chosen={chosen}
        onChange={setChosen}
      />
      <CreditsField
        name="limit"
        label={form.limit}
        hint={form.limitHint}
        error={error("creditLimit")}
        before={before?.creditLimit}
      />
    </FormDialog>
  );
}
