/** Shows a new key's value once. Only the button closes the dialog, and then the value leaves the page. */
import { useId } from "react";
import { useRead } from "../../api/queries.ts";
import { Button } from "../../elements/button.tsx";
import { CopyButton } from "../../elements/copy-button.tsx";
import { Dialog } from "../../elements/dialog.tsx";
import { exampleModel } from "../../elements/snippet/example-model.ts";
import { Snippet } from "../../elements/snippet/snippet.tsx";
import { useTexts } from "../../messages/messages.ts";
import { useSession } from "../../session/session.ts";

interface SecretDialogProps {
  readonly value: string;
  /** The models that the key may call. null for every model. */
  readonly allowedModels: readonly string[] | null;
  readonly onStored: () => void;
}

export function SecretDialog({ value, allowedModels, onStored }: SecretDialogProps) {
  const { t } = useTexts();
  const { apiUrl } = useSession();
  const id = useId();
  const models = useRead("listModels", {});
  const model = exampleModel(models.data?.items ?? [], allowedModels);
  return (
    <Dialog title={t.keys.secret.title} wide>
      <p>{t.keys.secret.lead}</p>
      <div className="secret">
        <code id={id} aria-label={t.keys.secret.label}>
          {value}
        </code>
        <CopyButton text={value} shownIn={id} kind="primary" />
      </div>
      {model && (
        <>
          <h3>{t.keys.secret.use}</h3>
          <Snippet apiUrl={apiUrl} model={model} apiKey={value} />
        </>
      )}
      <div className="actions end">
        <Button kind="primary" onClick={onStored}>
          {t.keys.secret.stored}
        </Button>
      </div>
    </Dialog>
  );
}
