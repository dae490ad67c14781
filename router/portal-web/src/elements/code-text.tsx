/** A text of the messages: what stands between backticks is code. */
import { Fragment } from "react";

export function CodeText({ text }: { readonly text: string }) {
  return text
    .split("`")
    .map((part, index) =>
      index % 2 === 1 ? <code key={index}>{part}</code> : <Fragment key={index}>{part}</Fragment>,
    );
}
