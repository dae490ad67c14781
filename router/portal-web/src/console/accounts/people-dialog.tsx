/** The people of an account, one by one or all together blocked and unblocked. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { ConsoleAccount } from "../../../../src/surface/contract/console.ts";
import type { Problem } from "../../api/problem.ts";
import { Badge } from "../../elements/badge.tsx";
import { Button } from "../../elements/button.tsx";
import { Dialog } from "../../elements/dialog.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { ProblemBox } from "../../elements/problem-box.tsx";
import { Table, type Column } from "../../elements/table.tsx";
import { useToast } from "../../elements/toast.tsx";
import { calls, useRead, usersOf, type ListedUser } from "../api.ts";
import { useConsoleTexts } from "../texts.ts";

interface Wish {
  readonly users: readonly ListedUser[];
  readonly block: boolean;
}

export function PeopleDialog({ account, onClose }: { readonly account: ConsoleAccount; readonly onClose: () => void }) {
  const { t, c, format } = useConsoleTexts();
  const { dialog } = c.accounts;
  const say = useToast();
  const client = useQueryClient();
  const read = useRead("listUsers", usersOf(account.id));
  const [isSure, setSure] = useState(false);
  const change = useMutation<void, Problem, Wish>({
    async mutationFn({ users, block }) {
      for (const { id } of users) await calls.call(block ? "blockUser" : "unblockUser", { params: { id } });
    },
    onSuccess(_done, { users, block }) {
      const [first, ...more] = users;
      if (more.length > 0) say(block ? dialog.allBlocked : dialog.allUnblocked);
      else if (first) say(dialog.done(first.email, t.users.states[block ? "blocked" : "active"]));
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["listUsers"] }),
  });
  const people = read.data?.items ?? [];
  const [blocked, free] = [
    people.filter(({ state }) => state === "blocked"),
    people.filter(({ state }) => state !== "blocked"),
  ];
  const keys = format.number(free.reduce((sum, user) => sum + user.keys, 0));
  const blockAll = () => {
    if (isSure) change.mutate({ users: free, block: true });
    setSure(!isSure);
  };
  return (
    <Dialog title={c.accounts.manage(account.name)} onClose={onClose} wide>
      <p>{dialog.lead}</p>
      <Loaded read={read}>
        {({ items }) => (
          <Table
            caption={c.accounts.manage(account.name)}
            columns={columnsOf(c, t, change.isPending, (user, block) => change.mutate({ users: [user], block }))}
            rows={items}
            rowKey={({ id }) => id}
          />
        )}
      </Loaded>
      {change.error && <ProblemBox problem={change.error} />}
      <div className="actions">
        {blocked.length > 1 && (
          <Button busy={change.isPending} onClick={() => change.mutate({ users: blocked, block: false })}>
            {dialog.unblockAll}
          </Button>
        )}
        {free.length > 0 && (
          <Button kind="danger" busy={change.isPending} onClick={blockAll}>
            {isSure ? dialog.sure(keys) : dialog.blockAll}
          </Button>
        )}
        <Button onClick={onClose}>{t.shell.close}</Button>
      </div>
    </Dialog>
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
