/** A form whose fields the browser checks first and the server after it. */
import type { ReactNode } from "react";
import type { Problem } from "../api/problem.ts";
import { Button } from "./button.tsx";
import { ProblemBox } from "./problem-box.tsx";

interface FormProps {
  /** Is given the values by the names of the fields; none of our forms has files. */
  readonly onSubmit: (values: Readonly<Record<string, string>>) => void;
  readonly submit: string;
  readonly kind?: "primary" | "danger";
  readonly busy: boolean;
  /** Whether something is still missing. */
  readonly disabled?: boolean;
  readonly problem: Problem | null;
  readonly children: ReactNode;
  /** Beside the button. */
  readonly actions?: ReactNode;
}

export function Form({ onSubmit, submit, kind = "primary", busy, disabled, problem, children, actions }: FormProps) {
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        if (busy || disabled) return;
        onSubmit(Object.fromEntries(new FormData(event.currentTarget)) as Record<string, string>);
      }}
    >
      {children}
      {problem && <ProblemBox problem={problem} />}
      <div className="actions">
        {actions}
        <Button type="submit" kind={kind} busy={busy} disabled={disabled}>
          {submit}
        </Button>
      </div>
    </form>
  );
}
