/** The dialogs of the keys page: create, edit, regenerate, revoke. */
import { useState } from "react";
import type { Answer } from "../../api/client.ts";
import { queryClient } from "../../api/hooks.ts";
import { useChange } from "../../api/queries.ts";
import { ConfirmByName } from "../../elements/confirm-by-name.tsx";
import { FormDialog, useDone } from "../../elements/form.tsx";
import { useTexts } from "../../messages/messages.ts";
import { useSession } from "../../session/session.ts";
import { HolderField } from "./holder-field.tsx";
import { KeyForm } from "./key-form.tsx";
import { SecretDialog } from "./secret-dialog.tsx";

export type ListedKey = Answer<"listKeys">["items"][number];

export type KeyWish =
  | { readonly kind: "create" }
  | { readonly kind: "edit" | "regenerate" | "revoke"; readonly key: ListedKey }
  | { readonly kind: "revoke-several"; readonly keys: readonly ListedKey[] };

interface DialogProps {
  readonly onClose: () => void;
}

export function KeyDialog({ wish, onClose }: DialogProps & { readonly wish: KeyWish }) {
  switch (wish.kind) {
    case "create":
      return <CreateKey onClose={onClose} />;
    case "edit":
      return <EditKey listed={wish.key} onClose={onClose} />;
    case "regenerate":
      return <RegenerateKey listed={wish.key} onClose={onClose} />;
    case "revoke":
      return <RevokeKey listed={wish.key} onClose={onClose} />;
    case "revoke-several":
      return <RevokeKeys keys={wish.keys} onClose={onClose} />;
  }
}

export function CreateKey({ onClose }: DialogProps) {
  const { t } = useTexts();
  const { user } = useSession();
  const create = useChange("createKey", "listKeys");
  const [userId, setUserId] = useState<string | undefined>(user.id);
  const made = create.data;
  if (made) return <SecretDialog value={made.value} allowedModels={made.key.allowedModels} onStored={onClose} />;
  return (
    <KeyForm
      title={t.keys.form.createTitle}
      submit={t.keys.form.submit}
      change={create}
      onSubmit={(body) => create.mutate({ body: { ...body, userId } })}
      onClose={onClose}
    >
      {user.role === "owner" && <HolderField onChange={setUserId} />}
    </KeyForm>
  );
}

function EditKey({ listed, onClose }: DialogProps & { readonly listed: ListedKey }) {
  const { t } = useTexts();
  const done = useDone(onClose);
  const update = useChange("updateKey", "listKeys");
  return (
    <KeyForm
      before={listed}
      title={t.keys.form.editTitle(listed.name)}
      submit={t.shell.save}
      change={update}
      onSubmit={(body) => update.mutate({ params: { id: listed.id }, body }, done(t.keys.changed(body.name)))}
      onClose={onClose}
    />
  );
}

function RegenerateKey({ listed, onClose }: DialogProps & { readonly listed: ListedKey }) {
  const { t } = useTexts();
  const texts = t.keys.regenerateDialog;
  const regenerate = useChange("regenerateKey", "listKeys");
  const made = regenerate.data;
  if (made) return <SecretDialog value={made.value} allowedModels={made.key.allowedModels} onStored={onClose} />;
  return (
    <FormDialog
      title={texts.title(listed.name)}
      submit={texts.submit}
      change={regenerate}
      onSubmit={() => regenerate.mutate({ params: { id: listed.id } })}
      onClose={onClose}
    >
      <p>{texts.lead}</p>
    </FormDialog>
  );
}

function RevokeKey({ listed, onClose }: DialogProps & { readonly listed: ListedKey }) {
  const { t } = useTexts();
  const done = useDone(onClose);
  const revoke = useChange("revokeKey", "listKeys");
  return (
    <ConfirmByName
      name={listed.name}
      texts={t.keys.revokeDialog}
      change={revoke}
      onConfirm={() => revoke.mutate({ params: { id: listed.id } }, done(t.keys.revoked(listed.name)))}
      onClose={onClose}
    />
  );
}

/** Revokes one after the other. After a failure, the names that stay are those of the keys that still work. */
function RevokeKeys({ keys, onClose }: DialogProps & { readonly keys: readonly ListedKey[] }) {
  const { t, format } = useTexts();
  const done = useDone(onClose);
  const revoke = useChange("revokeKey");
  const [left, setLeft] = useState(keys);
  const [isPending, setPending] = useState(false);
  const revokeAll = async () => {
    setPending(true);
    let revoked = 0;
    try {
      for (const { id } of left) {
        await revoke.mutateAsync({ params: { id } });
        revoked++;
      }
    } catch {
      // The dialog shows the error of the change.
    }
    await queryClient.invalidateQueries({ queryKey: ["listKeys"] });
    setPending(false);
    if (revoked === left.length) done(t.keys.revokedSeveral(format.number(keys.length))).onSuccess();
    else setLeft(left.slice(revoked));
  };
  return (
    <ConfirmByName
      name={String(keys.length)}
      texts={t.keys.revokeSeveralDialog}
      change={{ isPending, error: revoke.error }}
      onConfirm={() => void revokeAll()}
      onClose={onClose}
    >
      <ul className="named">
        {left.map(({ id, name, lastFour, userEmail }) => (
          <li key={id}>
            <strong>{name}</strong> <code className="soft">…{lastFour}</code> <span className="soft">{userEmail}</span>
          </li>
        ))}
      </ul>
    </ConfirmByName>
  );
}
