/** Short confirmations, which disappear after a while. */
import { Toast } from "@base-ui/react/toast";
import type { ReactNode } from "react";
import { useTexts } from "../messages/messages.ts";
import { Icon } from "./icons.tsx";

export function ToastProvider({ children }: { readonly children: ReactNode }) {
  return (
    <Toast.Provider timeout={6_000}>
      {children}
      <Toast.Portal>
        <Toast.Viewport className="toasts">
          <Toasts />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  );
}

/** Returns a function that shows a sentence. */
export function useToast(): (text: string) => void {
  const { add } = Toast.useToastManager();
  return (text) => void add({ title: text });
}

function Toasts() {
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
