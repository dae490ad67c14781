/** Asks the user to type a thing's name before it is destroyed. */
import { useState, type ReactNode } from "react";
import { TextField } from "./field.tsx";
import { FormDialog, type Change } from "./form.tsx";

interface ConfirmByNameProps {
  /** The text that must be typed. */
  readonly name: string;
  readonly texts: {
    readonly title: (name: string) => string;
    readonly lead: string;
    readonly confirm: (name: string) => string;
    readonly submit: string;
  };
  readonly change: Change;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
  /** What is destroyed, if the name does not say it. */
  readonly children?: ReactNode;
}

export function ConfirmByName({ name, texts, change, onConfirm, onClose, children }: ConfirmByNameProps) {
  const [typed, setTyped] = useState("");
  return (
    <FormDialog
      title={texts.title(name)}
      submit={texts.submit}
      kind="danger"
      change={change}
      disabled={typed.trim() !== name}
      onSubmit={onConfirm}
      onClose={onClose}
    >
      <p>{texts.lead}</p>
      {children}
      <TextField
        label={texts.confirm(name)}
        value={typed}
        onChange={({ target }) => setTyped(target.value)}
        autoComplete="off"
        autoFocus
      />
    </FormDialog>
  );
}
