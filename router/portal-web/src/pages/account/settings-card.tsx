/** Language and theme of the user, on every device. */
import { useChange } from "../../api/queries.ts";
import { SelectField } from "../../elements/field.tsx";
import type { Language } from "../../messages/format.ts";
import { useTexts } from "../../messages/messages.ts";
import { usePreferences, type Theme } from "../../session/preferences.tsx";
import { languageNames, themes } from "../../shell/preference-switches.tsx";

export function SettingsCard() {
  const { t } = useTexts();
  const preferences = usePreferences();
  const change = useChange("updateProfile", "session");
  return (
    <section className="card" aria-labelledby="settings">
      <h2 id="settings">{t.account.settings}</h2>
      <div className="columns">
        <SelectField
          label={t.shell.language}
          value={preferences.language}
          onChange={({ target }) => {
            const language = target.value as Language;
            preferences.setLanguage(language);
            change.mutate({ body: { language } });
          }}
        >
          {(["de", "en"] as const).map((language) => (
            <option key={language} value={language}>
              {languageNames[language]}
            </option>
          ))}
        </SelectField>
        <SelectField
          label={t.shell.theme}
          value={preferences.theme ?? "system"}
          onChange={({ target }) => {
            const theme = target.value === "system" ? null : (target.value as Theme);
            preferences.setTheme(theme);
            change.mutate({ body: { theme } });
          }}
        >
          {themes.map((theme) => (
            <option key={theme} value={theme ?? "system"}>
              {t.shell.themes[theme ?? "system"]}
            </option>
          ))}
        </SelectField>
      </div>
    </section>
  );
}
