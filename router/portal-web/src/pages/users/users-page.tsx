/** The page of users: who may do what. */
import { useState } from "react";
import { useLocation } from "wouter";
import { useChange, useRead } from "../../api/queries.ts";
import { ActionMenu, type MenuAction } from "../../elements/action-menu.tsx";
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
import { useToast } from "../../elements/toast/toast.tsx";
import { UsedCell } from "../../elements/used-cell.tsx";
import { useTexts } from "../../messages/messages.ts";
import { useSession } from "../../session/session.ts";
import { UserDialog, type UserWish } from "./user-dialogs.tsx";
import type { ListedUser } from "./user-form.tsx";

const roles = ["owner", "admin", "member"] as const;
const states = ["active", "invited", "uninvited", "blocked"] as const;
const sorts = ["email", "role", "state", "used", "keys", "lastLogin", "created"] as const;
const refreshMs = 30_000;

export default function UsersPage() {
  const { t, format } = useTexts();
  const list = useListState();
  const [role, state] = [oneOf(roles, list.get("role")), oneOf(states, list.get("state"))];
  const sorted = { sort: oneOf(sorts, list.sort), order: list.order };
  const query = { page: list.page, search: list.search, role, state, ...sorted };
  const read = useRead("listUsers", { query }, { refreshMs });
  const [wish, setWish] = useState<UserWish>();
  const columns = useColumns(setWish);
  return (
    <Page
      title={t.shell.pages.users}
      lead={t.users.lead}
      actions={
        <Button kind="primary" onClick={() => setWish({ kind: "invite" })}>
          <Icon name="plus" />
          {t.users.invite}
        </Button>
      }
    >
      <div className="filters">
        <SearchField label={t.users.search} state={list} />
        <FilterSelect name="role" label={t.users.role} state={list} values={roles} texts={t.shell.roles} />
        <FilterSelect name="state" label={t.users.state} state={list} values={states} texts={t.users.states} />
        <output className="soft number">{read.data && t.users.count(format.number(read.data.total))}</output>
      </div>
      <Loaded read={read}>
        {(users) =>
          users.items.length > 0 ? (
            <>
              <Table
                caption={t.shell.pages.users}
                columns={columns}
                rows={users.items}
                rowKey={({ id }) => id}
                state={list}
              />
              <Pages state={list} list={users} />
            </>
          ) : (
            <Empty title={t.users.empty} hint={t.users.emptyHint}>
              <Button onClick={() => list.set({ search: undefined, role: undefined, state: undefined })}>
                {t.users.clearFilter}
              </Button>
            </Empty>
          )
        }
      </Loaded>
      {wish && <UserDialog wish={wish} onClose={() => setWish(undefined)} />}
    </Page>
  );
}

const tones: Readonly<Record<ListedUser["state"], Tone>> = {
  active: "good",
  invited: "accent",
  uninvited: "plain",
  blocked: "bad",
};

function useColumns(onWish: (wish: UserWish) => void): readonly Column<ListedUser>[] {
  const { t, format } = useTexts();
  const { columns, never } = t.users;
  const { user: self } = useSession();
  const nowMs = useNow();
  return [
    {
      name: "email",
      title: columns.email,
      sort: "email",
      cell: ({ id, email, name }) => (
        <span className="name-cell">
          {name !== null && <>{name} </>}
          <strong>{email}</strong> {id === self.id && <Badge tone="plain">{t.users.you}</Badge>}
        </span>
      ),
    },
    { name: "role", title: columns.role, sort: "role", cell: ({ role }) => t.shell.roles[role] },
    { name: "state", title: columns.state, sort: "state", cell: (user) => <UserState user={user} /> },
    {
      name: "models",
      title: columns.models,
      cell: ({ allowedModels: models }) => {
        if (models === null) return t.keys.allModels;
        if (models.length === 1) return <code>{models[0]}</code>;
        return <span title={format.list(models)}>{t.keys.modelCount(format.number(models.length))}</span>;
      },
    },
    {
      name: "used",
      title: columns.used,
      sort: "used",
      isNumber: true,
      cell: ({ email, creditsUsed, creditLimit }) => <UsedCell label={email} used={creditsUsed} limit={creditLimit} />,
    },
    { name: "keys", title: columns.keys, sort: "keys", isNumber: true, cell: ({ keys }) => format.number(keys) },
    {
      name: "lastLogin",
      title: columns.lastLogin,
      sort: "lastLogin",
      cell: ({ lastLoginAt: at }) =>
        at ? <time title={format.dateTime(at)}>{format.relative(at, nowMs)}</time> : never,
    },
    {
      name: "actions",
      title: columns.actions,
      isTitleHidden: true,
      cell: (user) => <UserMenu user={user} onWish={onWish} />,
    },
  ];
}

function UserState({ user: { state, reason, invitedUntil } }: { readonly user: ListedUser }) {
  const { t, format } = useTexts();
  const detail =
    state === "invited" && invitedUntil
      ? t.users.invitedUntil(format.dateTime(invitedUntil))
      : reason !== null && reason !== "blocked" && t.users.reasons[reason];
  return (
    <>
      <Badge tone={reason === "user-limit" ? "warn" : tones[state]}>{t.users.states[state]}</Badge>
      {detail && <small className="reason">{detail}</small>}
    </>
  );
}

function UserMenu({ user, onWish }: { readonly user: ListedUser; readonly onWish: (wish: UserWish) => void }) {
  const { t } = useTexts();
  const say = useToast();
  const { user: self } = useSession();
  const [, go] = useLocation();
  const unblock = useChange("unblockUser", "listUsers");
  const withdraw = useChange("withdrawInvitation", "listUsers");
  const params = { id: user.id };
  const open = (kind: Exclude<UserWish["kind"], "invite">, label: string, isBad = false): MenuAction => ({
    label,
    isBad,
    onClick: () => onWish({ kind, user }),
  });
  const usage: MenuAction = { label: t.shell.pages.usage, onClick: () => go(`/usage?user=${user.id}&by=key`) };
  // Only Owners change Owners, and nobody blocks or deletes themselves.
  if (user.role === "owner" && self.role !== "owner")
    return <ActionMenu label={t.users.menu(user.email)} actions={[usage]} />;
  const actions: MenuAction[] = [usage, open("edit", t.users.edit)];
  if (user.state === "invited" || user.state === "uninvited") actions.push(open("renew", t.users.newLink));
  if (user.state === "active" && user.id !== self.id) actions.push(open("reset", t.users.resetLink));
  if (user.state === "blocked")
    actions.push({
      label: t.users.unblock,
      onClick: () => unblock.mutate({ params }, { onSuccess: () => say(t.users.unblocked(user.email)) }),
    });
  if (user.state === "invited")
    actions.push({
      label: t.users.withdraw,
      isBad: true,
      onClick: () => withdraw.mutate({ params }, { onSuccess: () => say(t.users.withdrawn) }),
    });
  if (user.state !== "blocked" && user.id !== self.id) actions.push(open("block", t.users.block, true));
  if (user.id !== self.id) actions.push(open("delete", t.users.delete, true));
  return <ActionMenu label={t.users.menu(user.email)} actions={actions} />;
}
