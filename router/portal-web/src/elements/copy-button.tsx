/** Copies a text and confirms it. If the browser refuses, selects the text and explains how to copy it. */
import { useRef, useState } from "react";
import { useTexts } from "../messages/messages.ts";
import { Button } from "./button.tsx";
import { Icon } from "./icons.tsx";

interface CopyButtonProps {
  readonly text: string;
  /** The id of the element that shows the text. */
  readonly shownIn: string;
  readonly kind?: "primary" | "plain" | "quiet";
}

const shownMs = 3_000;

export function CopyButton({ text, shownIn, kind = "plain" }: CopyButtonProps) {
  const { t } = useTexts();
  const [state, setState] = useState<"ready" | "copied" | "by hand">("ready");
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  async function copy() {
    clearTimeout(timer.current);
    try {
      await navigator.clipboard.writeText(text);
      setState("copied");
      timer.current = setTimeout(() => setState("ready"), shownMs);
    } catch {
      select(shownIn);
      setState("by hand");
    }
  }
  const label = { ready: t.shell.copy, copied: t.shell.copied, "by hand": t.shell.copyByHand }[state];
  return (
    <Button kind={kind} onClick={() => void copy()} aria-live="polite">
      <Icon name={state === "copied" ? "check" : "copy"} />
      {label}
    </Button>
  );
}

function select(id: string): void {
  const element = document.getElementById(id);
  if (!element) return;
  getSelection()?.selectAllChildren(element);
}
