/** The texts of the help page. They are long, and no other page needs them: they come with it, in both languages. */
import { help as german } from "./de/help.ts";
import { help as english } from "./en/help.ts";
import { useTexts } from "./messages.ts";
import type { Shape } from "./shape.ts";

export function useHelp(): Shape<typeof english> {
  return useTexts().format.language === "de" ? german : english;
}
