/** The dialogs of the keys page: create, edit, regenerate, revoke. */
import { useState } from "react";
import type { Answer } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import { Button } from "../../elements/button.tsx";
import { ConfirmByName } from "../../elements/confirm-by-name.tsx";
import { Dialog } from "../../elements/dialog.tsx";
import { ProblemBox } from "../../elements/problem-box.tsx";
import { useToast } from "../../elements/toast.tsx";
import { useTexts } from "../../messages/messages.ts";
import { useSession } from "../../session/session.ts";
import { HolderField } from "./holder-field.tsx";
import { KeyForm } from "./key-form.tsx";
import { SecretDialog } from "./secret-dialog.tsx";

export type ListedKey = Answer<"listKeys">["items"][number];

export type KeyWish =
  | { readonly kind: "create" }
  | { readonly kind: "edit" | "regenerate" | "revoke"; readonly key: ListedKey };

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
    <Dialog title={t.keys.form.createTitle} onClose={onClose}>
      <KeyForm
        submit={t.keys.form.submit}
        busy={create.isPending}
        problem={create.error}
        onSubmit={(body) => create.mutate({ body: { ...body, userId } })}
        onCancel={onClose}
      >
        {user.role === "owner" && <HolderField onChange={setUserId} />}
      </KeyForm>
    </Dialog>
  );
}

function EditKey({ listed, onClose }: DialogProps & { readonly listed: ListedKey }) {
  const { t } = useTexts();
  const say = useToast();
  const update = useChange("updateKey", "listKeys");
  return (
    <Dialog title={t.keys.form.editTitle(listed.name)} onClose={onClose}>
      <KeyForm
        before={listed}
        submit={t.shell.save}
        busy={update.isPending}
        problem={update.error}
        onCancel={onClose}
        onSubmit={(body) =>
          update.mutate(
            { params: { id: listed.id }, body },
            {
              onSuccess: () => {
                say(t.keys.changed(body.name));
                onClose();
              },
            },
          )
        }
      />
    </Dialog>
  );
}

function RegenerateKey({ listed, onClose }: DialogProps & { readonly listed: ListedKey }) {
  const { t } = useTexts();
  const texts = t.keys.regenerateDialog;
  const regenerate = useChange("regenerateKey", "listKeys");
  const made = regenerate.data;
  if (made) return <SecretDialog value={made.value} allowedModels={made.key.allowedModels} onStored={onClose} />;
  return (
    <Dialog title={texts.title(listed.name)} onClose={onClose}>
      <p>{texts.lead}</p>
      {regenerate.error && <ProblemBox problem={regenerate.error} />}
      <div className="actions end">
        <Button onClick={onClose}>{t.shell.cancel}</Button>
        <Button
          kind="primary"
          busy={regenerate.isPending}
          onClick={() => regenerate.mutate({ params: { id: listed.id } })}
        >
          {texts.submit}
        </Button>
      </div>
    </Dialog>
  );
}

function RevokeKey({ listed, onClose }: DialogProps & { readonly listed: ListedKey }) {
  const { t } = useTexts();
  const say = useToast();
  const revoke = useChange("revokeKey", "listKeys");
  const onSuccess = () => {
    say(t.keys.revoked(listed.name));
    onClose();
  };
  return (
    <ConfirmByName
      name={listed.name}
      texts={t.keys.revokeDialog}
      busy={revoke.isPending}
      problem={revoke.error}
      onConfirm={() => revoke.mutate({ params: { id: listed.id } }, { onSuccess })}
      onClose={onClose}
    />
  );
}
