/** Asks for e-mail address and password, then for a code if the second factor is on. */
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { call, type Ask } from "../../api/client.ts";
import type { Problem } from "../../api/problem.ts";
import { Button } from "../../elements/button.tsx";
import { CodeField, EmailField, PasswordField } from "../../elements/credential-fields.tsx";
import { Form } from "../../elements/form.tsx";
import { useTexts } from "../../messages/messages.ts";

interface SignInFormProps {
  /** The e-mail address of a person who signs in again. */
  readonly email?: string;
  readonly onSignedIn: () => void;
}

export function SignInForm({ email, onSignedIn }: SignInFormProps) {
  const { t } = useTexts();
  const { signIn } = t;
  const [proven, setProven] = useState<{ readonly email: string; readonly password: string }>();
  const change = useMutation<void, Problem, Ask<"signIn">>({
    mutationFn: (ask) => call("signIn", ask),
    onSuccess: onSignedIn,
    onError: (problem, { body }) => {
      if (problem.code === "totp_required") setProven({ email: body.email, password: body.password });
    },
  });
  const error = change.error?.code === "totp_required" ? null : change.error;
  const common = { submit: signIn.submit, change: { isPending: change.isPending, error } };

  if (proven)
    return (
      <Form
        {...common}
        key="code"
        onSubmit={({ code }) => change.mutate({ body: { ...proven, code: code!.replaceAll(" ", "") } })}
        actions={<Button onClick={() => (change.reset(), setProven(undefined))}>{signIn.back}</Button>}
      >
        <p>{signIn.codeLead}</p>
        <CodeField label={signIn.code} hint={signIn.codeHint} className="code" autoFocus />
      </Form>
    );
  return (
    <Form
      {...common}
      key="password"
      onSubmit={(values) => change.mutate({ body: { email: values["email"]!.trim(), password: values["password"]! } })}
    >
      <EmailField {...(email === undefined ? { autoFocus: true } : { defaultValue: email, readOnly: true })} />
      <PasswordField autoFocus={email !== undefined} />
    </Form>
  );
}
