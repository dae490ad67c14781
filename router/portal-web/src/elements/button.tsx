/** Buttons. While `busy`, the first click is being carried out, and further clicks do nothing. */
import type { ComponentProps } from "react";
import { Link } from "wouter";

type Kind = "primary" | "plain" | "danger" | "quiet";

interface ButtonProps extends ComponentProps<"button"> {
  readonly kind?: Kind;
  readonly busy?: boolean;
}

export function Button({ kind = "plain", busy = false, className = "", onClick, children, ...more }: ButtonProps) {
  return (
    <button
      type="button"
      className={`button ${kind} ${className}`}
      aria-busy={busy || undefined}
      aria-disabled={busy || undefined}
      onClick={busy ? (event) => event.preventDefault() : onClick}
      {...more}
    >
      {children}
    </button>
  );
}

export function ButtonLink({ to, kind = "plain", children }: { to: string; kind?: Kind; children: React.ReactNode }) {
  return (
    <Link to={to} className={`button ${kind}`}>
      {children}
    </Link>
  );
}
