/** Actions of all commands: ask the router, and print a table or, with `--json`, the answer. */
import type { Ask } from "./client.ts";

export interface Actions {
  readonly ask: Ask;
  /** Prints the value with `--json`, otherwise the text. */
  readonly print: (value: unknown, text: string) => void;
  readonly printItem: (item: object) => void;
  readonly printList: (items: readonly object[], columns: readonly string[]) => void;
}
