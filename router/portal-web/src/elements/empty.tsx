/** Why a list is empty, and what to do next. */
import type { ReactNode } from "react";

interface EmptyProps {
  readonly title: string;
  readonly hint: string;
  readonly children?: ReactNode;
}

export function Empty({ title, hint, children }: EmptyProps) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      <p>{hint}</p>
      {children && <div className="actions">{children}</div>}
    </div>
  );
}
