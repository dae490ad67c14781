/** Changes the user's own password. */
import { useState } from "react";
import type { Answer } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import { CodeField, NewPasswordField, PasswordField } from "../../elements/credential-fields.tsx";
import { Form } from "../../elements/form.tsx";
import { useToast } from "../../elements/toast/toast.tsx";
import { fieldText } from "../../messages/problem-text.ts";
import { useTexts } from "../../messages/messages.ts";

export type Profile = Answer<"profile">;

export function PasswordCard({ profile }: { readonly profile: Profile }) {
  const texts = useTexts();
  const { t, format } = texts;
  const { password } = t.account;
  const say = useToast();
  // A new key gives a new form with empty fields after a change.
  const [round, setRound] = useState(0);
  const change = useChange("changePassword", "devices", "profile");
  return (
    <section className="card" aria-labelledby="password">
      <h2 id="password">{password.title}</h2>
      <p className="soft">
        {profile.passwordSetAt && password.since(format.dateTime(profile.passwordSetAt))} {password.lead}
      </p>
      <Form
        key={round}
        submit={password.submit}
        change={change}
        onSubmit={({ current, wanted, code }) =>
          change.mutate(
            { body: { password: current!, newPassword: wanted!, code: code || undefined } },
            {
              onSuccess: () => {
                say(password.done);
                setRound(round + 1);
              },
            },
          )
        }
      >
        <input type="hidden" name="username" autoComplete="username" value={profile.email} readOnly />
        <div className="columns">
          <PasswordField name="current" label={password.current} error={fieldText(change.error, "password", texts)} />
          <NewPasswordField name="wanted" label={password.new} change={change} param="newPassword" />
        </div>
        {profile.totp && <CodeField />}
      </Form>
    </section>
  );
}
