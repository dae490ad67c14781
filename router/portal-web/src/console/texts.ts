/** The texts of the console, in the person's language. */
import type { Language } from "../messages/format.ts";
import type { console as english } from "../messages/console/en.ts";
import { loadTexts, useTexts, type Texts } from "../messages/messages.ts";
import type { Shape } from "../messages/shape.ts";

export type ConsoleMessages = Shape<typeof english>;

interface ConsoleTexts extends Texts {
  readonly c: ConsoleMessages;
}

/** Fetches only the texts of this language. */
export async function loadConsoleTexts(language: Language): Promise<ConsoleTexts> {
  const own = language === "de" ? import("../messages/console/de.ts") : import("../messages/console/en.ts");
  const [texts, { console: c }] = await Promise.all([loadTexts(language), own]);
  return { ...texts, c };
}

/** `c`: the console's own texts. `t`: texts of elements that it shares with the portal. */
export function useConsoleTexts(): ConsoleTexts {
  return useTexts() as ConsoleTexts;
}
