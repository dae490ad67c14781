/** A state in one word. Its colour only repeats the word. */
import type { ReactNode } from "react";

export type Tone = "good" | "warn" | "bad" | "plain" | "accent";

export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ReactNode }) {
  return <span className={`badge ${tone}`}>{children}</span>;
}
