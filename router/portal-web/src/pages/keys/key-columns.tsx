/** The columns of the list of keys. */
import type { ReactNode } from "react";
import { useLocation } from "wouter";
import { ActionMenu } from "../../elements/action-menu.tsx";
import { Badge, type Tone } from "../../elements/badge.tsx";
import type { Column } from "../../elements/table.tsx";
import { UsedCell } from "../../elements/used-cell.tsx";
import { useTexts } from "../../messages/messages.ts";
import { useMay, useSession } from "../../session/session.ts";
import { useNow } from "../../time/now.ts";
import type { KeyWish, ListedKey } from "./key-dialogs.tsx";

/** `pick` shows a checkbox before a key's name. */
export function useKeyColumns(
  onWish: (wish: KeyWish) => void,
  pick: (key: ListedKey) => ReactNode,
): readonly Column<ListedKey>[] {
  const { t, format } = useTexts();
  const { columns, never, noExpiry } = t.keys;
  const nowMs = useNow();
  const seesOthers = useMay()("listUsers");
  const name: Column<ListedKey> = {
    name: "name",
    title: columns.name,
    sort: "name",
    cell: (key) => (
      <span className="picked-name">
        <span className="name-cell">
          <strong>{key.name}</strong> <code className="soft">…{key.lastFour}</code>
        </span>
        {/* Shown first, but read last, so that the cell's name begins with the key's. */}
        {pick(key)}
      </span>
    ),
  };
  const user: Column<ListedKey> = { name: "user", title: columns.user, sort: "user", cell: (key) => key.userEmail };
  const rest: readonly Column<ListedKey>[] = [
    { name: "state", title: columns.state, sort: "state", cell: (key) => <KeyStateBadge listed={key} /> },
    { name: "models", title: columns.models, cell: (key) => <ModelsCell listed={key} /> },
    { name: "used", title: columns.used, sort: "used", isNumber: true, cell: (key) => <KeyUse listed={key} /> },
    {
      name: "lastUsed",
      title: columns.lastUsed,
      sort: "lastUsed",
      cell: ({ lastUsedAt: at }) =>
        at ? <time title={format.dateTime(at)}>{format.relative(at, nowMs)}</time> : never,
    },
    {
      name: "expires",
      title: columns.expires,
      sort: "expires",
      cell: ({ expiresAt: at }) => (at ? <time title={format.dateTime(at)}>{format.lastDay(at)}</time> : noExpiry),
    },
    {
      name: "actions",
      title: columns.actions,
      isTitleHidden: true,
      cell: (key) => <KeyMenu listed={key} onWish={onWish} />,
    },
  ];
  return seesOthers ? [name, user, ...rest] : [name, ...rest];
}

const tones: Readonly<Record<ListedKey["state"], Tone>> = {
  active: "good",
  "blocked-by-limit": "bad",
  "user-blocked": "bad",
  expired: "plain",
  revoked: "plain",
};

function KeyStateBadge({ listed: { state, reason } }: { readonly listed: ListedKey }) {
  const { t } = useTexts();
  const isHindered = state === "active" && reason !== null;
  const saysMore = reason !== null && reason !== state;
  return (
    <>
      <Badge tone={isHindered ? "warn" : tones[state]}>{isHindered ? t.keys.hindered : t.keys.states[state]}</Badge>
      {saysMore && <small className="reason">{t.keys.reasons[reason]}</small>}
    </>
  );
}

function ModelsCell({ listed: { usableModels: models } }: { readonly listed: ListedKey }) {
  const { t, format } = useTexts();
  if (models === null) return t.keys.allModels;
  if (models.length === 1) return <code>{models[0]}</code>;
  return <span title={format.list(models)}>{t.keys.modelCount(format.number(models.length))}</span>;
}

function KeyUse({ listed: { state, creditsUsed, creditLimit, binding, name } }: { readonly listed: ListedKey }) {
  const { t, format } = useTexts();
  const isBoundByUser = state === "active" && binding?.by === "user";
  return (
    <UsedCell label={name} used={creditsUsed} limit={creditLimit}>
      {isBoundByUser && <small>{t.keys.userLimitLeft(format.number(binding.left))}</small>}
    </UsedCell>
  );
}

function KeyMenu({ listed, onWish }: { readonly listed: ListedKey; readonly onWish: (wish: KeyWish) => void }) {
  const { t } = useTexts();
  const { user } = useSession();
  const [, go] = useLocation();
  // Admins see and revoke all keys. Only Owners change other users' keys.
  const mayChange = listed.userId === user.id || user.role === "owner";
  const action = (kind: "edit" | "regenerate" | "revoke") => ({
    label: t.keys[kind],
    onClick: () => onWish({ kind, key: listed }),
    isBad: kind === "revoke",
  });
  const kinds = mayChange ? (["edit", "regenerate", "revoke"] as const) : (["revoke"] as const);
  const usage = { label: t.shell.pages.usage, onClick: () => go(`/usage?key=${listed.id}&by=day`) };
  const changes = listed.state === "revoked" ? [] : kinds.map(action);
  return <ActionMenu label={t.keys.menu(listed.name)} actions={[usage, ...changes]} />;
}
