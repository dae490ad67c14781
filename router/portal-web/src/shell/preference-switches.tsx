/** Switches for language and theme before sign-in. */
import { useTexts } from "../messages/messages.ts";
import { usePreferences, type Theme } from "../session/preferences.tsx";

export const languageNames = { de: "Deutsch", en: "English" } as const;
export const themes = [null, "light", "dark"] as const;

export function PreferenceSwitches() {
  const { t } = useTexts();
  const preferences = usePreferences();
  return (
    <div className="switches">
      {(["de", "en"] as const).map((language) => (
        <button
          key={language}
          type="button"
          lang={language}
          className="button quiet"
          aria-pressed={preferences.language === language}
          onClick={() => preferences.setLanguage(language)}
        >
          {languageNames[language]}
        </button>
      ))}
      <select
        aria-label={t.shell.theme}
        value={preferences.theme ?? "system"}
        onChange={({ target }) => preferences.setTheme(target.value === "system" ? null : (target.value as Theme))}
      >
        {themes.map((theme) => (
          <option key={theme} value={theme ?? "system"}>
            {t.shell.themes[theme ?? "system"]}
          </option>
        ))}
      </select>
    </div>
  );
}
