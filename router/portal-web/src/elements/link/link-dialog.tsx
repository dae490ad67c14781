/** Shows a one-time link, or says that it was mailed. */
import { useTexts } from "../../messages/messages.ts";
import { Button } from "../button.tsx";
import { CopyButton } from "../copy-button.tsx";
import { Dialog } from "../dialog.tsx";

interface LinkDialogProps {
  readonly onClose: () => void;
  readonly title: string;
  readonly email: string;
  /** null if the link was mailed. Then nobody else sees it. */
  readonly url: string | null;
  /** null if the router sends no mail. */
  readonly mailed: boolean | null;
}

export function LinkDialog({ title, email, url, mailed, onClose }: LinkDialogProps) {
  const { link } = useTexts().t.users;
  const lead = mailed === null ? link.notMailed : !mailed ? link.failed : url === null ? link.onlyMailed : link.mailed;
  return (
    <Dialog title={title} wide>
      <p>{lead(email)}</p>
      {url !== null && (
        <div className="secret">
          <code id="link" aria-label={link.label}>
            {url}
          </code>
          <CopyButton text={url} shownIn="link" kind="primary" />
        </div>
      )}
      <div className="actions end">
        <Button onClick={onClose}>{link.done}</Button>
      </div>
    </Dialog>
  );
}
