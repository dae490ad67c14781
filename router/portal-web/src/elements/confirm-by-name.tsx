/** Asks for the name of what is to be destroyed before it is. */
import { useState } from "react";
import type { Problem } from "../api/problem.ts";
import { useTexts } from "../messages/messages.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { TextField } from "./field.tsx";
import { Form } from "./form.tsx";

interface ConfirmByNameProps {
  /** The text that must be typed. */
  readonly name: string;
  readonly texts: {
    readonly title: (name: string) => string;
    readonly lead: string;
    readonly confirm: (name: string) => string;
    readonly submit: string;
  };
  readonly busy: boolean;
  readonly problem: Problem | null;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

export function ConfirmByName({ name, texts, busy, problem, onConfirm, onClose }: ConfirmByNameProps) {
  const { t } = useTexts();
  const [typed, setTyped] = useState("");
  return (
    <Dialog title={texts.title(name)} onClose={onClose}>
      <p>{texts.lead}</p>
      <Form
        submit={texts.submit}
        kind="danger"
        busy={busy}
        disabled={typed.trim() !== name}
        problem={problem}
        actions={<Button onClick={onClose}>{t.shell.cancel}</Button>}
        onSubmit={onConfirm}
      >
        <TextField
          label={texts.confirm(name)}
          value={typed}
          onChange={({ target }) => setTyped(target.value)}
          autoComplete="off"
          autoFocus
        />
      </Form>
    </Dialog>
  );
}
