/** The page of keys: all keys and their users. Revoked keys are hidden until they are asked for. */
import { useState } from "react";
import { useRead } from "../../api/queries.ts";
import { Button } from "../../elements/button.tsx";
import { Empty } from "../../elements/empty.tsx";
import { oneOf, useListState } from "../../elements/list-state.ts";
import { Loaded } from "../../elements/loaded.tsx";
import { Page } from "../../elements/page.tsx";
import { FilterSelect, SearchField } from "../../elements/search-field.tsx";
import { Pages, Table } from "../../elements/table.tsx";
import { useTexts } from "../../messages/messages.ts";
import { CreateKeyButton } from "./create-key-button.tsx";
import { useKeyColumns } from "./key-columns.tsx";
import { KeyDialog, type KeyWish } from "./key-dialogs.tsx";
import { PickedKeys, usePickedKeys } from "./picked-keys.tsx";

const states = ["active", "blocked-by-limit", "user-blocked", "expired", "revoked"] as const;
const sorts = ["name", "user", "state", "used", "lastUsed", "created", "expires"] as const;
const refreshMs = 30_000;

export default function KeysPage() {
  const { t, format } = useTexts();
  const list = useListState();
  const state = oneOf(states, list.get("state"));
  const showsRevoked = state === "revoked" || list.get("revoked") === "shown";
  const query = {
    ...{ page: list.page, search: list.search, state, sort: oneOf(sorts, list.sort), order: list.order },
    ...(!showsRevoked && { revoked: false }),
  };
  const read = useRead("listKeys", { query }, { refreshMs });
  const [wish, setWish] = useWish();
  const picked = usePickedKeys(read.data?.items ?? []);
  const columns = useKeyColumns(setWish, picked.pick);
  const { total, own, revoked = 0 } = read.data ?? {};
  const isEmpty = total === 0 && !list.isFiltered && revoked === 0;
  /** Shown only in its final place, because a button that disappears loses the focus. */
  const isPlaced = (total !== undefined || list.isFiltered) && !isEmpty;
  const create = <CreateKeyButton own={own} onClick={() => setWish({ kind: "create" })} />;
  return (
    <Page title={t.shell.pages.keys} lead={t.keys.leadNone} actions={isPlaced && create}>
      {!isEmpty && (
        <div className="filters">
          <SearchField label={t.keys.search} state={list} />
          <FilterSelect name="state" label={t.keys.state} state={list} values={states} texts={t.keys.states} />
          {revoked > 0 && state !== "revoked" && (
            <label className="inline">
              <input
                type="checkbox"
                checked={showsRevoked}
                onChange={() => list.set({ revoked: showsRevoked ? undefined : "shown" })}
              />
              {t.keys.showRevoked(format.number(revoked))}
            </label>
          )}
          <output className="soft number">{total !== undefined && t.keys.count(format.number(total))}</output>
        </div>
      )}
      <PickedKeys picked={picked} onRevoke={(keys) => setWish({ kind: "revoke-several", keys })} />
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
          ) : list.isFiltered ? (
            <Empty title={t.keys.emptyFilter} hint={t.keys.emptyFilterHint}>
              <Button onClick={() => list.set({ search: undefined, state: undefined, revoked: "shown" })}>
                {t.keys.clearFilter}
              </Button>
            </Empty>
          ) : (
            <Empty title={t.keys.noneInUse} hint={t.keys.emptyHint} />
          )
        }
      </Loaded>
      {wish && <KeyDialog wish={wish} onClose={() => setWish(undefined)} />}
    </Page>
  );
}

/** The dialog that is open. A link of a notice opens one, too: it names the key to regenerate. */
function useWish() {
  const list = useListState();
  const [wish, setWish] = useState<KeyWish>();
  const wanted = list.get("regenerate");
  const named = useRead("showKey", { params: { id: wanted ?? "" } }, { enabled: wanted !== undefined });
  const [opened, setOpened] = useState<string>();
  // Once it is open, the dialog depends on nothing that is fetched again, because it will show a key.
  if (named.data && wanted !== undefined && wanted !== opened) {
    setOpened(wanted);
    if (named.data.state === "active") setWish({ kind: "regenerate", key: named.data });
  }
  const change = (next: KeyWish | undefined) => {
    setWish(next);
    if (next === undefined && wanted !== undefined) list.set({ regenerate: undefined });
  };
  return [wish, change] as const;
}
