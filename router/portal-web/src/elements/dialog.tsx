/** A modal browser dialog, shown while it is rendered. It keeps the focus, and returns it to the opening element. */
import { useEffect, useId, useRef, type ReactNode } from "react";

interface DialogProps {
  readonly title: string;
  /** If undefined, neither Escape nor a click outside closes the dialog. */
  readonly onClose?: () => void;
  readonly wide?: boolean;
  readonly children: ReactNode;
}

export function Dialog({ title, onClose, wide, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const opener = document.activeElement;
    const dialog = ref.current!;
    dialog.showModal();
    // React's autofocus is too early, because an element that is not shown cannot be focused.
    dialog.querySelector<HTMLElement>("[data-autofocus]")?.focus();
    return () => {
      dialog.close();
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      className={wide ? "wide" : undefined}
      aria-labelledby={id}
      closedby={onClose ? "any" : "none"}
      onCancel={(event) => {
        if (event.target !== ref.current) return;
        event.preventDefault();
        onClose?.();
      }}
      // Keeps Escape from the browser, which would close the dialog at a second Escape even if the page forbids it.
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        onClose?.();
      }}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}
