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
    const opener = openerOf(document.activeElement);
    const dialog = ref.current!;
    dialog.showModal();
    // React's autofocus is too early, because an element that is not shown cannot be focused.
    dialog.querySelector<HTMLElement>("[data-autofocus]")?.focus();
    return () => {
      dialog.close();
      // The opener may be in a row that has gone. The page's heading is the next best place.
      const place = opener?.isConnected ? opener : document.querySelector<HTMLElement>("main h1");
      place?.focus();
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

/** An entry of a menu disappears with it, so the menu's button stands for it. */
function openerOf(focused: Element | null): HTMLElement | null {
  const button = focused?.closest("[role=menu]")?.getAttribute("aria-labelledby");
  const opener = button ? document.getElementById(button) : focused;
  return opener instanceof HTMLElement && opener !== document.body ? opener : null;
}
