/** The form for a key's settings, to create or change a key. */
import { useState } from "react";
import type { Ask } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import { CreditsField } from "../../elements/credits-field.tsx";
import { TextField } from "../../elements/field.tsx";
import { FormDialog, type FormDialogProps } from "../../elements/form.tsx";
import { addDays, endOfGermanDay, germanDay, lastGermanDay } from "../../time/german-day.ts";
import { useNow } from "../../time/now.ts";
import { fieldText } from "../../messages/problem-text.ts";
import { useTexts } from "../../messages/messages.ts";
import { ModelChoice } from "../../elements/model-choice.tsx";

interface KeySettings {
  readonly name: string;
  readonly allowedModels: readonly string[] | null;
  readonly creditLimit: string | null;
  readonly expiresAt: string | null;
}
type Wish = Pick<Ask<"createKey">["body"], "name" | "allowedModels" | "creditLimit" | "expiresAt">;

/** `children`: more fields after the name. */
interface KeyFormProps extends Omit<FormDialogProps, "onSubmit"> {
  /** The key to change. If undefined, a new key is created. */
  readonly before?: KeySettings;
  readonly onSubmit: (wish: Wish & { readonly name: string }) => void;
}

export function KeyForm({ before, onSubmit, children, ...dialog }: KeyFormProps) {
  const texts = useTexts();
  const { t } = texts;
  const models = useRead("listModels", {});
  const [chosen, setChosen] = useState(before?.allowedModels ?? null);
  const today = germanDay(useNow());
  const error = (param: string) => fieldText(dialog.change.error, param, texts);
  return (
    <FormDialog
      {...dialog}
      onSubmit={({ name, limit, expiry }) =>
        onSubmit({
          name: name!.trim(),
          allowedModels: chosen && [...chosen],
          creditLimit: limit || null,
          expiresAt: expiryOf(expiry, before),
        })
      }
    >
      <TextField
        name="name"
        label={t.keys.form.name}
        hint={t.keys.form.nameHint}
        error={error("name")}
        defaultValue={before?.name}
        maxLength={200}
        pattern=".*\S.*"
        autoComplete="off"
        required
        autoFocus
      />
      {children}
      <ModelChoice
        legend={t.keys.form.models}
        every={t.keys.form.every}
        only={t.keys.form.chosen}
        models={models.data?.items.map(({ id }) => id) ?? []}
        chosen={chosen}
        onChange={setChosen}
      />
      <div className="columns">
        <CreditsField
          name="limit"
          label={t.keys.form.limit}
          hint={t.keys.form.limitHint}
          error={error("creditLimit")}
          before={before?.creditLimit}
        />
        <TextField
          name="expiry"
          type="date"
          label={t.keys.form.expiry}
          hint={t.keys.form.expiryHint}
          error={error("expiresAt")}
          defaultValue={before?.expiresAt ? lastGermanDay(before.expiresAt) : ""}
          min={today}
          max={addDays(today, 3_650)}
        />
      </div>
    </FormDialog>
  );
}

/** Keeps an unchanged expiry to the second, because it may not be at midnight. */
function expiryOf(day: string | undefined, before: KeySettings | undefined): string | null {
  if (!day) return null;
  if (before?.expiresAt && lastGermanDay(before.expiresAt) === day) return before.expiresAt;
  return endOfGermanDay(day);
}
