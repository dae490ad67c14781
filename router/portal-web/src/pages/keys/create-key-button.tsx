/** The button that creates a key, beside how many of the keys that a person may have are in use. */
import { useId } from "react";
import type { Answer } from "../../api/client.ts";
import { Button } from "../../elements/button.tsx";
import { Icon } from "../../elements/icons.tsx";
import { useTexts } from "../../messages/messages.ts";
import { useSession } from "../../session/session.ts";

interface CreateKeyButtonProps {
  readonly own: Answer<"listKeys">["own"] | undefined;
  readonly onClick: () => void;
}

/** It stays focusable without a key left, because the focus returns to it from the dialog that made the last one. */
export function CreateKeyButton({ own, onClick }: CreateKeyButtonProps) {
  const { t, format } = useTexts();
  const { user } = useSession();
  const id = useId();
  const isFull = own != null && own.used >= own.max;
  // Owners make keys for others, too.
  const isBarred = isFull && user.role !== "owner";
  const text = isBarred ? t.keys.ownFull : t.keys.own;
  return (
    <>
      {own && (
        <span id={id} className="soft number">
          {text(format.number(own.used), format.number(own.max))}
        </span>
      )}
      <Button
        kind="primary"
        onClick={isBarred ? undefined : onClick}
        aria-disabled={isBarred || undefined}
        aria-describedby={isBarred ? id : undefined}
      >
        <Icon name="plus" />
        {t.keys.create}
      </Button>
    </>
  );
}
