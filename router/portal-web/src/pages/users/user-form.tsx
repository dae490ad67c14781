/** Role and limits of a user: for somebody who is invited, and to change them. */
import { useState } from "react";
import type { Answer, Ask } from "../../api/client.ts";
import type { Problem } from "../../api/problem.ts";
import { useRead } from "../../api/queries.ts";
import { Button } from "../../elements/button.tsx";
import { SelectField, TextField } from "../../elements/field.tsx";
import { Form } from "../../elements/form.tsx";
import { ModelChoice } from "../../elements/model-choice.tsx";
import { fieldText } from "../../messages/problem-text.ts";
import { useTexts } from "../../messages/messages.ts";
import { useSession } from "../../session/session.ts";

export type ListedUser = Answer<"listUsers">["items"][number];
type Wish = Omit<Ask<"createUser">["body"], "email">;
type Role = ListedUser["role"];

interface UserFormProps {
  /** Absent: somebody new. */
  readonly before?: ListedUser;
  readonly submit: string;
  readonly busy: boolean;
  readonly problem: Problem | null;
  readonly onSubmit: (email: string, wish: Wish) => void;
  readonly onCancel: () => void;
}

export function UserForm({ before, submit, busy, problem, onSubmit, onCancel }: UserFormProps) {
  const texts = useTexts();
  const { t } = texts;
  const { form } = t.users;
  const session = useSession();
  const models = useRead("listModels", {});
  const [chosen, setChosen] = useState(before?.allowedModels ?? null);
  const [role, setRole] = useState<Role>(before?.role ?? "member");
  // Only Owners make Owners.
  const roles =
    session.user.role === "owner" ? (["member", "admin", "owner"] as const) : (["member", "admin"] as const);
  return (
    <Form
      submit={submit}
      busy={busy}
      problem={problem}
      actions={<Button onClick={onCancel}>{t.shell.cancel}</Button>}
      onSubmit={({ email, limit }) =>
        onSubmit(before?.email ?? email!.trim(), {
          role,
          allowedModels: chosen && [...chosen],
          creditLimit: limit?.trim() ? limit.trim() : null,
        })
      }
    >
      {!before && (
        <TextField
          name="email"
          type="email"
          label={form.email}
          error={fieldText(problem, "email", texts)}
          maxLength={254}
          autoComplete="off"
          required
          autoFocus
        />
      )}
      <SelectField
        label={form.role}
        hint={form.roleHints[role]}
        error={fieldText(problem, "role", texts)}
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
      <TextField
        name="limit"
        label={form.limit}
        hint={form.limitHint}
        error={fieldText(problem, "creditLimit", texts)}
        defaultValue={before?.creditLimit ? String(Number(before.creditLimit)) : ""}
        inputMode="decimal"
        pattern="\d{1,9}(\.\d{1,3})?"
        autoComplete="off"
      />
    </Form>
  );
}
