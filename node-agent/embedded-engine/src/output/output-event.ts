/** A piece of an answer, separated from the model's text. */
export type OutputEvent =
  | { readonly kind: "reasoning" | "content"; readonly text: string }
  /** A tool is named. Its arguments follow. */
  | { readonly kind: "tool-call"; readonly index: number; readonly name: string }
  | { readonly kind: "tool-arguments"; readonly index: number; readonly text: string };
