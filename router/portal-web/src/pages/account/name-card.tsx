/** What the person calls themselves. */
import type { Answer } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import { TextField } from "../../elements/field.tsx";
import { Form } from "../../elements/form.tsx";
import { useToast } from "../../elements/toast/toast.tsx";
import { fieldText } from "../../messages/problem-text.ts";
import { useTexts } from "../../messages/messages.ts";

export function NameCard({ profile }: { readonly profile: Answer<"profile"> }) {
  const texts = useTexts();
  const { name } = texts.t.account;
  const say = useToast();
  const change = useChange("updateProfile", "profile");
  return (
    <section className="card" aria-labelledby="own-name">
      <h2 id="own-name">{name.title}</h2>
      <Form
        submit={name.submit}
        change={change}
        onSubmit={({ ownName }) =>
          change.mutate({ body: { name: ownName!.trim() || null } }, { onSuccess: () => say(name.done) })
        }
      >
        <TextField
          name="ownName"
          label={name.label}
          hint={name.hint}
          error={fieldText(change.error, "name", texts)}
          defaultValue={profile.name ?? ""}
          autoComplete="name"
          maxLength={200}
        />
      </Form>
    </section>
  );
}
