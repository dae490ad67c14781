/** The page of keys: all keys and their users. */
import { useState } from "react";
import { useLocation } from "wouter";
import { useRead } from "../../api/queries.ts";
import { ActionMenu } from "../../elements/action-menu.tsx";
import { Badge, type Tone } from "../../elements/badge.tsx";
import { Button } from "../../elements/button.tsx";
import { Empty } from "../../elements/empty.tsx";
import { Icon } from "../../elements/icons.tsx";
import { oneOf, useListState } from "../../elements/list-state.ts";
import { Loaded } from "../../elements/loaded.tsx";
import { useNow } from "../../time/now.ts";
import { Page } from "../../elements/page.tsx";
import { FilterSelect, SearchField } from "../../elements/search-field.tsx";
import { Pages, Table, type Column } from "../../elements/table.tsx";
import { UsedCell } from "../../elements/used-cell.tsx";
import { useTexts } from "../../messages/messages.ts";
import { useMay, useSession } from "../../session/session.ts";
import { KeyDialog, type KeyWish, type ListedKey } from "./key-dialogs.tsx";

const states = ["active", "blocked-by-limit", "user-blocked", "expired", "revoked"] as const;
const sorts = ["name", "user", "state", "used", "lastUsed", "created", "expires"] as const;
const refreshMs = 30_000;

export default function KeysPage() {
  const { t, format } = useTexts();
  const list = useListState();
  const state = oneOf(states, list.get("state"));
  const query = { page: list.page, search: list.search, state, sort: oneOf(sorts, list.sort), order: list.order };
  const read = useRead("listKeys", { query }, { refreshMs });
  const [wish, setWish] = useState<KeyWish>();
  const columns = useColumns(setWish);
  const wanted = list.get("regenerate");
  const named = useRead("showKey", { params: { id: wanted ?? "" } }, { enabled: wanted !== undefined });
  const [opened, setOpened] = useState<string>();
  // Once it is open, the dialog depends on nothing that is fetched again, because it will show a key.
  if (named.data && wanted !== undefined && wanted !== opened) {
    setOpened(wanted);
    if (named.data.state === "active") setWish({ kind: "regenerate", key: named.data });
  }
  const close = () => {
    setWish(undefined);
    if (wanted !== undefined) list.set({ regenerate: undefined });
  };
  const total = read.data?.total;
  const isEmpty = total === 0 && !list.isFiltered;
  /** Shown only in its final place, because a button that disappears loses the focus. */
  const isPlaced = (total !== undefined || list.isFiltered) && !isEmpty;
  const create = (
    <Button kind="primary" onClick={() => setWish({ kind: "create" })}>
      <Icon name="plus" />
      {t.keys.create}
    </Button>
  );
  return (
    <Page title={t.shell.pages.keys} lead={t.keys.leadNone} actions={isPlaced && create}>
      {!isEmpty && (
        <div className="filters">
          <SearchField label={t.keys.search} state={list} />
          <FilterSelect name="state" label={t.keys.state} state={list} values={states} texts={t.keys.states} />
          <output className="soft number">{total !== undefined && t.keys.count(format.number(total))}</output>
        </div>
      )}
      <Loaded read={read}>
        {(keys) =>
          keys.items.length > 0 ? (
            <>
              <Table
                caption={t.shell.pages.keys}
                columns={columns}
                rows={keys.items}
                rowKey={({ id }) => id}
                state={list}
              />
              <Pages state={list} list={keys} />
            </>
          ) : isEmpty ? (
            <Empty title={t.keys.empty} hint={t.keys.emptyHint}>
              {create}
            </Empty>
          ) : (
            <Empty title={t.keys.emptyFilter} hint={t.keys.emptyFilterHint}>
              <Button onClick={() => list.set({ search: undefined, state: undefined })}>{t.keys.clearFilter}</Button>
            </Empty>
          )
        }
      </Loaded>
      {wish && <KeyDialog wish={wish} onClose={close} />}
    </Page>
  );
}

function useColumns(onWish: (wish: KeyWish) => void): readonly Column<ListedKey>[] {
  const { t, format } = useTexts();
  const { columns, never, noExpiry } = t.keys;
  const nowMs = useNow();
  const seesOthers = useMay()("listUsers");
  const name: Column<ListedKey> = {
    name: "name",
    title: columns.name,
    sort: "name",
    cell: ({ name: text, lastFour }) => (
      <span className="name-cell">
        <strong>{text}</strong> <code className="soft">…{lastFour}</code>
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
