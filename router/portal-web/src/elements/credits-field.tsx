/** The field for a credit limit. It shows at once which amount it understood, and refuses what it cannot read. */
import { useEffect, useRef, useState, type ReactNode } from "react";
import { useRead } from "../api/queries.ts";
import { shareOf } from "../messages/format.ts";
import { useTexts, type Texts } from "../messages/messages.ts";
import { creditsMax, readCredits, type TypedCredits } from "../messages/typed-credits.ts";
import { TextField } from "./field.tsx";

interface CreditsFieldProps {
  /** The form gets the amount by this name, as the API takes it. An empty text is no limit. */
  readonly name: string;
  readonly label: string;
  readonly hint: string;
  readonly error: string | undefined;
  readonly before: string | null | undefined;
}

export function CreditsField({ name, label, hint, error, before }: CreditsFieldProps) {
  const texts = useTexts();
  const { format } = texts;
  const shown = before ? format.number(before) : "";
  const [text, setText] = useState(shown);
  const input = useRef<HTMLInputElement>(null);
  // An unchanged limit stays, because 1.234 credits look like thousands in some language.
  const typed: TypedCredits =
    before && text === shown ? { kind: "credits", value: before } : readCredits(text, format.language);
  const refusal = refusalOf(typed, text.trim(), texts);
  useEffect(() => input.current?.setCustomValidity(refusal), [refusal]);
  return (
    <>
      <TextField
        ref={input}
        label={label}
        hint={
          <>
            {hint} <Understood typed={typed}>{refusal}</Understood>
          </>
        }
        error={error}
        value={text}
        onChange={({ target }) => setText(target.value)}
        maxLength={40}
        autoComplete="off"
      />
      <input type="hidden" name={name} value={typed.kind === "credits" ? typed.value : ""} />
    </>
  );
}

function Understood({ typed, children }: { readonly typed: TypedCredits; readonly children: ReactNode }) {
  const { t, format } = useTexts();
  const { quota } = useRead("showCredits", {}).data ?? { quota: null };
  const sentence = (value: string) => {
    if (quota === null) return t.credits.understood(format.number(value));
    const share = shareOf(value, quota);
    const part = share > 0 && share < 0.01 ? t.credits.little : format.percent(share);
    return t.credits.understoodOf(format.number(value), part);
  };
  return <output className="understood">{typed.kind === "credits" ? sentence(typed.value) : children}</output>;
}

function refusalOf(typed: TypedCredits, text: string, { t, format }: Texts): string {
  if (typed.kind === "ambiguous") {
    const small = format.number(typed.small);
    // A fourth decimal is never one of thousands.
    return t.credits.ambiguous(text, /\D\d{3}$/.test(small) ? `${small}0` : small, format.number(typed.large));
  }
  return typed.kind === "unreadable" ? t.credits.unreadable(format.number(creditsMax)) : "";
}
