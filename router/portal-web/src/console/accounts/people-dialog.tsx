/** The dialog that blocks and unblocks an account or one of its people. */
import { useState } from "react";
import type { ConsoleAccount } from "../../../../src/surface/contract/console.ts";
import { Badge } from "../../elements/badge.tsx";
import { Button } from "../../elements/button.tsx";
import { Dialog } from "../../elements/dialog.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { ProblemBox } from "../../elements/problem-box.tsx";
import { Table, type Column } from "../../elements/table.tsx";
import { useToast } from "../../elements/toast/toast.tsx";
import { useChange, useRead, usersOf, type ListedUser } from "../api.ts";
import { useConsoleTexts } from "../texts.ts";

export function PeopleDialog({ account, onClose }: { readonly account: ConsoleAccount; readonly onClose: () => void }) {
  const { t, c } = useConsoleTexts();
  const { dialog } = c.accounts;
  const say = useToast();
  const read = useRead("listUsers", usersOf(account.id));
  const block = useChange("blockUser", "listUsers");
  const unblock = useChange("unblockUser", "listUsers");
  const change = ({ id, email }: ListedUser, isBlocked: boolean) =>
    (isBlocked ? block : unblock).mutate(
      { params: { id } },
      { onSuccess: () => say(dialog.done(email, t.users.states[isBlocked ? "blocked" : "active"])) },
    );
  const problem = block.error ?? unblock.error;
  return (
    <Dialog title={c.accounts.manage(account.name)} onClose={onClose} wide>
      <p>{dialog.lead}</p>
      <Loaded read={read}>
        {({ items }) => (
          <>
            <Table
              caption={c.accounts.manage(account.name)}
              columns={columnsOf(c, t, block.isPending || unblock.isPending, change)}
              rows={items}
              rowKey={({ id }) => id}
            />
            <AccountBlock account={account} keys={items.reduce((sum, user) => sum + user.keys, 0)} onClose={onClose} />
          </>
        )}
      </Loaded>
      {problem && <ProblemBox problem={problem} />}
    </Dialog>
  );
}

interface AccountBlockProps {
  readonly account: ConsoleAccount;
  /** Number of keys that stop working when the account is blocked. */
  readonly keys: number;
  readonly onClose: () => void;
}

/** Blocks the whole account by two clicks, and unblocks it by one. */
function AccountBlock({ account: { id, name, blockedAt }, keys, onClose }: AccountBlockProps) {
  const { t, c, format } = useConsoleTexts();
  const { dialog } = c.accounts;
  const say = useToast();
  const block = useChange("blockAccount");
  const unblock = useChange("unblockAccount");
  const [isSure, setSure] = useState(false);
  const change = (isBlocked: boolean) =>
    (isBlocked ? block : unblock).mutate(
      { params: { id } },
      {
        onSuccess() {
          say(isBlocked ? dialog.accountBlocked(name) : dialog.accountUnblocked(name));
          onClose();
        },
      },
    );
  const problem = block.error ?? unblock.error;
  return (
    <>
      {problem && <ProblemBox problem={problem} />}
      <div className="actions">
        {blockedAt !== null ? (
          <Button busy={unblock.isPending} onClick={() => change(false)}>
            {dialog.unblockAccount}
          </Button>
        ) : (
          <Button kind="danger" busy={block.isPending} onClick={() => (isSure ? change(true) : setSure(true))}>
            {isSure ? dialog.sure(name, format.number(keys)) : dialog.blockAccount}
          </Button>
        )}
        <Button onClick={onClose}>{t.shell.close}</Button>
      </div>
    </>
  );
}

function columnsOf(
  { accounts: { dialog } }: ReturnType<typeof useConsoleTexts>["c"],
  t: ReturnType<typeof useConsoleTexts>["t"],
  busy: boolean,
  onChange: (user: ListedUser, block: boolean) => void,
): readonly Column<ListedUser>[] {
  const { columns } = dialog;
  return [
    { name: "email", title: columns.email, cell: ({ email }) => <span className="name-cell">{email}</span> },
    { name: "role", title: columns.role, cell: ({ role }) => t.shell.roles[role] },
    {
      name: "state",
      title: columns.state,
      cell: ({ state }) => <Badge tone={state === "blocked" ? "bad" : "plain"}>{t.users.states[state]}</Badge>,
    },
    { name: "keys", title: columns.keys, isNumber: true, cell: ({ keys }) => keys },
    {
      name: "actions",
      title: columns.actions,
      isTitleHidden: true,
      cell: (user) => {
        const block = user.state !== "blocked";
        return (
          <Button
            busy={busy}
            aria-label={block ? dialog.block(user.email) : dialog.unblock(user.email)}
            onClick={() => onChange(user, block)}
          >
            {block ? dialog.blockShort : dialog.unblockShort}
          </Button>
        );
      },
    },
  ];
}
