/** A form whose fields are checked first by the browser, then by the server. */
import { useState, type ReactNode } from "react";
import type { Problem } from "../api/problem.ts";
import { useTexts } from "../messages/messages.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { ProblemBox } from "./problem-box.tsx";
import { useToast } from "./toast/toast.tsx";

/** The request that a form sends, as `useChange` returns it. */
export interface Change {
  readonly isPending: boolean;
  readonly error: Problem | null;
}

interface FormProps {
  /** Gets the values by the fields' names. No form has files. */
  readonly onSubmit: (values: Readonly<Record<string, string>>) => void;
  readonly submit: string;
  readonly kind?: "primary" | "danger";
  readonly change: Change;
  /** Whether a required input is missing. */
  readonly disabled?: boolean;
  readonly children?: ReactNode;
  /** Elements beside the button. */
  readonly actions?: ReactNode;
  readonly onType?: () => void;
}

export function Form({ onSubmit, submit, kind = "primary", change, disabled, children, actions, onType }: FormProps) {
  const { isPending, error } = change;
  return (
    <form
      className="form"
      onInput={onType}
      onSubmit={(event) => {
        event.preventDefault();
        if (isPending || disabled) return;
        onSubmit(Object.fromEntries(new FormData(event.currentTarget)) as Record<string, string>);
      }}
    >
      {children}
      {error && <ProblemBox problem={error} />}
      <div className="actions">
        {actions}
        <Button type="submit" kind={kind} busy={isPending} disabled={disabled}>
          {submit}
        </Button>
      </div>
    </form>
  );
}

export interface FormDialogProps extends Omit<FormProps, "actions" | "onType"> {
  readonly title: string;
  readonly onClose: () => void;
}

/** A form in a dialog, with a button that closes it. Without fields, it asks for confirmation. */
export function FormDialog({ title, onClose, ...form }: FormDialogProps) {
  const { t } = useTexts();
  const { isPending } = form.change;
  const [typed, setTyped] = useState<"nothing" | "something" | "asked">("nothing");
  const ask = () => setTyped("asked");
  return (
    // What the request makes, such as a key that is shown once, must have a place to be shown.
    <Dialog title={title} onClose={isPending ? undefined : typed === "nothing" ? onClose : ask}>
      {typed === "asked" && (
        <div className="note" role="alert">
          <p>{t.shell.discard.question}</p>
          <div className="actions">
            <Button onClick={() => setTyped("something")}>{t.shell.discard.keep}</Button>
            <Button kind="danger" onClick={onClose}>
              {t.shell.discard.discard}
            </Button>
          </div>
        </div>
      )}
      <Form
        {...form}
        onType={() => setTyped("something")}
        actions={
          <Button onClick={onClose} disabled={isPending}>
            {t.shell.cancel}
          </Button>
        }
      />
    </Dialog>
  );
}

/** Returns a function for the options of a change, which shows a sentence and closes the dialog on success. */
export function useDone(onClose: () => void): (text: string) => { readonly onSuccess: () => void } {
  const say = useToast();
  return (text) => ({
    onSuccess() {
      say(text);
      onClose();
    },
  });
}
