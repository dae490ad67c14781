/** The user's menu: language, theme and sign-out. It opens when it is first rendered. */
import { Menu } from "@base-ui/react/menu";
import { Link } from "wouter";
import { Icon } from "../elements/icons.tsx";
import type { Language } from "../messages/format.ts";
import { useTexts } from "../messages/messages.ts";
import { usePreferences, type Theme } from "../session/preferences.tsx";
import { useChange } from "../api/queries.ts";
import { forgetAll } from "../session/kept-in-tab.ts";
import { useSession } from "../session/session.ts";
import { UserName } from "./user-menu-button.tsx";
import { languageNames, themes } from "./preference-switches.tsx";

export default function UserMenu() {
  const { t } = useTexts();
  const { user } = useSession();
  const preferences = usePreferences();
  const profile = useChange("updateProfile", "session", "profile");
  const signOut = useChange("signOut");
  const leave = () => {
    forgetAll();
    signOut.mutate({}, { onSettled: () => location.assign("/") });
  };
  return (
    <Menu.Root modal={false} defaultOpen>
      <Menu.Trigger className="button quiet user-button" aria-label={t.shell.userMenu(user.email)}>
        <UserName />
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Positioner align="end" sideOffset={6} className="menu-positioner">
          <Menu.Popup className="menu">
            <p className="menu-head">
              {user.email}
              <small>{t.shell.roles[user.role]}</small>
            </p>
            <Menu.Group>
              <Menu.GroupLabel className="menu-label">{t.shell.language}</Menu.GroupLabel>
              <Menu.RadioGroup
                value={preferences.language}
                onValueChange={(language: Language) => {
                  preferences.setLanguage(language);
                  profile.mutate({ body: { language } });
                }}
              >
                {(["de", "en"] as const).map((language) => (
                  <Choice key={language} value={language} label={languageNames[language]} />
                ))}
              </Menu.RadioGroup>
            </Menu.Group>
            <Menu.Group>
              <Menu.GroupLabel className="menu-label">{t.shell.theme}</Menu.GroupLabel>
              <Menu.RadioGroup
                value={preferences.theme ?? "system"}
                onValueChange={(value: Theme | "system") => {
                  const theme = value === "system" ? null : value;
                  preferences.setTheme(theme);
                  profile.mutate({ body: { theme } });
                }}
              >
                {themes.map((theme) => (
                  <Choice key={theme} value={theme ?? "system"} label={t.shell.themes[theme ?? "system"]} />
                ))}
              </Menu.RadioGroup>
            </Menu.Group>
            <Menu.Separator className="menu-line" />
            <Menu.LinkItem className="menu-item" render={<Link to="/account" />} closeOnClick>
              {t.shell.pages.account}
            </Menu.LinkItem>
            <Menu.Item className="menu-item" onClick={leave}>
              {t.shell.signOut}
            </Menu.Item>
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}

function Choice({ value, label }: { readonly value: string; readonly label: string }) {
  return (
    <Menu.RadioItem className="menu-item" value={value}>
      <span className="menu-mark">
        <Menu.RadioItemIndicator>
          <Icon name="check" />
        </Menu.RadioItemIndicator>
      </span>
      {label}
    </Menu.RadioItem>
  );
}
