/** Several keys picked in the list, and what can be done with them. */
import { useState, type ReactNode } from "react";
import { Button } from "../../elements/button.tsx";
import { useTexts } from "../../messages/messages.ts";
import type { ListedKey } from "./key-dialogs.tsx";

interface Picked {
  /** Only keys that are shown: a filter or another page takes the others out. */
  readonly keys: readonly ListedKey[];
  readonly all: readonly ListedKey[];
  readonly set: (keys: readonly ListedKey[]) => void;
  readonly pick: (key: ListedKey) => ReactNode;
}

export function usePickedKeys(shown: readonly ListedKey[]): Picked {
  const { t } = useTexts();
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const all = shown.filter(({ state }) => state !== "revoked");
  const keys = all.filter(({ id }) => ids.has(id));
  const set = (next: readonly ListedKey[]) => setIds(new Set(next.map(({ id }) => id)));
  const pick = (key: ListedKey) => {
    if (key.state === "revoked") return undefined;
    const isPicked = ids.has(key.id);
    const next = isPicked ? keys.filter(({ id }) => id !== key.id) : [...keys, key];
    return (
      <label className="pick">
        <input type="checkbox" aria-label={t.keys.pick(key.name)} checked={isPicked} onChange={() => set(next)} />
      </label>
    );
  };
  return { keys, all, set, pick };
}

interface PickedKeysProps {
  readonly picked: Picked;
  readonly onRevoke: (keys: readonly ListedKey[]) => void;
}

export function PickedKeys({ picked: { keys, all, set }, onRevoke }: PickedKeysProps) {
  const { t, format } = useTexts();
  if (keys.length === 0) return null;
  return (
    <div className="picked">
      <output>{t.keys.picked(format.number(keys.length))}</output>
      {keys.length < all.length && (
        <Button kind="quiet" onClick={() => set(all)}>
          {t.keys.pickAll(format.number(all.length))}
        </Button>
      )}
      <Button kind="quiet" onClick={() => set([])}>
        {t.keys.pickNone}
      </Button>
      <Button className="push" kind="danger" onClick={() => onRevoke(keys)}>
        {t.keys.revokePicked}
      </Button>
    </div>
  );
}
