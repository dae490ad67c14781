/** The button with the signed-in user. Its menu is fetched just before it opens. */
import { lazy, Suspense, useState } from "react";
import { Icon } from "../elements/icons.tsx";
import { useTexts } from "../messages/messages.ts";
import { useSession } from "../session/session.ts";

const load = () => import("./user-menu.tsx");
const UserMenu = lazy(load);

export function UserMenuButton() {
  const { t } = useTexts();
  const { user } = useSession();
  const [isWanted, setWanted] = useState(false);
  const button = (
    <button
      type="button"
      className="button quiet user-button"
      aria-haspopup="menu"
      aria-expanded="false"
      aria-label={t.shell.userMenu(user.email)}
      onPointerEnter={() => void load()}
      onFocus={() => void load()}
      onClick={() => setWanted(true)}
    >
      <UserName />
    </button>
  );
  if (!isWanted) return button;
  return (
    <Suspense fallback={button}>
      <UserMenu />
    </Suspense>
  );
}

export function UserName() {
  const { user } = useSession();
  return (
    <>
      <span className="avatar" data-letter={user.email.charAt(0).toUpperCase()} />
      <span className="user-email">{user.email}</span>
      <Icon name="down" />
    </>
  );
}
