/** The field for the holder of a new key. The server searches people by a part of their address. */
import { useEffect, useId, useRef, useState } from "react";
import { useRead } from "../../api/queries.ts";
import { TextField } from "../../elements/field.tsx";
import { useTexts } from "../../messages/messages.ts";
import { useSession } from "../../session/session.ts";

const offered = 20;

interface HolderFieldProps {
  /** Undefined while the address belongs to no user. */
  readonly onChange: (userId: string | undefined) => void;
}

export function HolderField({ onChange }: HolderFieldProps) {
  const { t } = useTexts();
  const { user: self } = useSession();
  const [typed, setTyped] = useState(self.email);
  const list = useId();
  const input = useRef<HTMLInputElement>(null);
  const search = typed === self.email ? undefined : typed.trim();
  const people = useRead("listUsers", { query: { search, pageSize: offered } });
  const wanted = typed.trim().toLowerCase();
  const chosen =
    wanted === self.email.toLowerCase()
      ? self.id
      : people.data?.items.find(({ email }) => email.toLowerCase() === wanted)?.id;
  useEffect(() => {
    input.current?.setCustomValidity(chosen === undefined ? t.keys.form.holderUnknown : "");
    onChange(chosen);
  }, [chosen, onChange, t]);
  return (
    <>
      <TextField
        ref={input}
        type="email"
        label={t.keys.form.holder}
        hint={t.keys.form.holderHint}
        list={list}
        value={typed}
        maxLength={200}
        autoComplete="off"
        onChange={({ target }) => setTyped(target.value)}
        required
      />
      <datalist id={list}>
        {people.data?.items.map(({ id, email }) => (
          <option key={id} value={email}>
            {email}
          </option>
        ))}
      </datalist>
    </>
  );
}
