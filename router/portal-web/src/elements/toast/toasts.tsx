/** The part of the page in which confirmations appear. */
import { Toast } from "@base-ui/react/toast";
import { useEffect, type ReactNode } from "react";
import { useTexts } from "../../messages/messages.ts";
import { Icon } from "../icons.tsx";
import type { Said } from "./toast.tsx";

const manager = Toast.createToastManager();

/** Shows each new `said`. */
export default function Toasts({ said }: { readonly said: Said | undefined }): ReactNode {
  useEffect(() => {
    if (said) manager.add({ title: said.text });
  }, [said]);
  return (
    <Toast.Provider timeout={6_000} toastManager={manager}>
      <Toast.Portal>
        <Toast.Viewport className="toasts">
          <Newest />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  );
}

function Newest() {
  const { t } = useTexts();
  const { toasts } = Toast.useToastManager();
  // The newest alone: an older one may say the opposite, such as blocked and unblocked.
  return toasts.slice(0, 1).map((toast) => (
    <Toast.Root key={toast.id} toast={toast} className="toast">
      <Icon name="check" />
      <Toast.Title className="toast-title" />
      <Toast.Close className="button quiet icon-only" aria-label={t.shell.close}>
        <Icon name="close" />
      </Toast.Close>
    </Toast.Root>
  ));
}
