/** What every command does: it asks the router, and prints a table or, with `--json`, the answer. */
import type { Ask } from "./client.ts";

export interface Actions {
  readonly ask: Ask;
  /** With `--json` the value, otherwise the text. */
  readonly print: (value: unknown, text: string) => void;
  readonly printItem: (item: object) => void;
  readonly printList: (items: readonly object[], columns: readonly string[]) => void;
}
