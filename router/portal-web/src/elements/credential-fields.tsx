/** Fields for sign-in data, with the contract's rules and the attributes that password managers recognise. */
import { useTexts } from "../messages/messages.ts";
import { fieldText } from "../messages/problem-text.ts";
import { TextField, type TextFieldProps } from "./field.tsx";
import type { Change } from "./form.tsx";

type Texts = Partial<TextFieldProps>;

export function EmailField(more: Texts) {
  const { signIn } = useTexts().t;
  return (
    <TextField
      name="email"
      type="email"
      label={signIn.email}
      autoComplete="username"
      maxLength={254}
      required
      {...more}
    />
  );
}

/** A field for the current password. */
export function PasswordField(more: Texts) {
  const { signIn } = useTexts().t;
  return (
    <TextField
      name="password"
      type="password"
      label={signIn.password}
      autoComplete="current-password"
      maxLength={1024}
      required
      {...more}
    />
  );
}

/** A field for a new password, set by `change`. `param`: its name in the request. */
export function NewPasswordField({ change, param = "password", ...more }: Texts & { change: Change; param?: string }) {
  const texts = useTexts();
  return (
    <PasswordField
      hint={texts.t.signIn.passwordHint}
      error={fieldText(change.error, param, texts)}
      autoComplete="new-password"
      minLength={12}
      {...more}
    />
  );
}

/** A field for a code from the authenticator, or a recovery code. */
export function CodeField(more: Texts) {
  const { password } = useTexts().t.account;
  return (
    <TextField
      name="code"
      label={password.code}
      autoComplete="one-time-code"
      minLength={6}
      maxLength={40}
      required
      {...more}
    />
  );
}
