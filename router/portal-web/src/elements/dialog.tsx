/** A modal dialog of the browser: it holds the focus and gives it back to what opened it. Shown while it is rendered. */
import { useEffect, useId, useRef, type ReactNode } from "react";

interface DialogProps {
  readonly title: string;
  /** Absent: neither Escape nor a click outside closes it. */
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
    // An element that is not shown yet cannot be focused, so React's own way came too early.
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
      // A second Escape closes a dialog whatever its page says; this keeps it from the browser.
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
