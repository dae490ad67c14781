/** Leads to where this person can do something about a notice. */
import type { Answer, RouteName } from "../../api/client.ts";
import { useTexts } from "../../messages/messages.ts";
import { useMay } from "../../session/session.ts";
import { ButtonLink } from "../button.tsx";

type Notice = Answer<"listNotices">["items"][number];
type Action = "upgrade" | "raise" | "regenerate" | "package" | "changes";

interface Way {
  readonly action: Action;
  readonly to: string;
  readonly needs: RouteName;
}

function wayOf({ kind, key, user }: Pick<Notice, "kind" | "key" | "user">): Way | undefined {
  const found = (text: string) => encodeURIComponent(text);
  switch (kind) {
    case "quota-75":
    case "quota-90":
    case "quota-100":
      return { action: "upgrade", to: "/package", needs: "changePackage" };
    case "trial-ending":
    case "package-ending":
    case "package-terms":
      return { action: "package", to: "/package", needs: "changePackage" };
    case "key-limit":
      return key ? { action: "raise", to: `/keys?search=${found(key.lastFour)}`, needs: "updateKey" } : undefined;
    case "user-limit":
      return user ? { action: "raise", to: `/users?search=${found(user.email)}`, needs: "updateUser" } : undefined;
    case "key-expiring":
      return key ? { action: "regenerate", to: `/keys?regenerate=${key.id}`, needs: "regenerateKey" } : undefined;
    case "model-status":
    case "model-factor":
    case "model-change":
      return { action: "changes", to: "/changes", needs: "listChanges" };
  }
}

export function NoticeAction({ notice }: { readonly notice: Notice }) {
  const { t } = useTexts();
  const may = useMay();
  const way = wayOf(notice);
  if (!way || !may(way.needs)) return null;
  return <ButtonLink to={way.to}>{t.notices.actions[way.action]}</ButtonLink>;
}
