/** Language and theme, stored on this device for the next start, and on the server for the user's other devices. */
import { createContext, useContext, useEffect, useState, type ReactNode } from "react";
import type { Language } from "../messages/format.ts";
import { TextsContext, type Texts } from "../messages/messages.ts";

export type Theme = "light" | "dark";

interface Preferences {
  readonly language: Language;
  /** null for the system's setting. */
  readonly theme: Theme | null;
  setLanguage(language: Language): void;
  setTheme(theme: Theme | null): void;
}

const PreferencesContext = createContext<Preferences | null>(null);

export function usePreferences(): Preferences {
  return useContext(PreferencesContext)!;
}

/** `texts`: texts of the page's first language. `load` fetches the texts of another language. */
export function PreferencesProvider({
  texts: first,
  load,
  children,
}: {
  readonly texts: Texts;
  readonly load: (language: Language) => Promise<Texts>;
  readonly children: ReactNode;
}) {
  const [texts, setTexts] = useState(first);
  const [theme, setTheme] = useState(readTheme);
  useEffect(() => {
    const root = document.documentElement;
    if (theme) root.dataset["theme"] = theme;
    else delete root.dataset["theme"];
  }, [theme]);
  const preferences: Preferences = {
    language: texts.format.language,
    theme,
    setLanguage(language) {
      document.documentElement.lang = language;
      localStorage.setItem("weiche.language", language);
      void load(language).then(setTexts);
    },
    setTheme(wanted) {
      if (wanted) localStorage.setItem("weiche.theme", wanted);
      else localStorage.removeItem("weiche.theme");
      setTheme(wanted);
    },
  };
  return (
    <PreferencesContext value={preferences}>
      <TextsContext value={texts}>{children}</TextsContext>
    </PreferencesContext>
  );
}

function readTheme(): Theme | null {
  const theme = localStorage.getItem("weiche.theme");
  return theme === "light" || theme === "dark" ? theme : null;
}
