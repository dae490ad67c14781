/** All texts of the portal, in the person's language. A text that one language lacks is a type error. */
import { createContext, useContext } from "react";
import { createFormat, type Format, type Language } from "./format.ts";
import type { Messages } from "./shape.ts";

export type { Messages, Shape } from "./shape.ts";

export interface Texts {
  readonly t: Messages;
  readonly format: Format;
}

/** Only the texts of this language are fetched. */
export async function loadTexts(language: Language): Promise<Texts> {
  const t = language === "de" ? (await import("./de.ts")).de : (await import("./en.ts")).en;
  return { t, format: createFormat(language) };
}

export const TextsContext = createContext<Texts | null>(null);

export function useTexts(): Texts {
  return useContext(TextsContext)!;
}
