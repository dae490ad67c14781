/** The actions of every command: ask the router, and print a table or, with `--json`, the answer. */
import type { Ask } from "./client.ts";
import type { Terminal } from "./terminal.ts";

/** Returns a text for people. If `width`, the terminal's, is undefined, lines may have any length. */
export type Layout = (width?: number) => string;

export interface Actions {
  readonly ask: Ask;
  /** Prints the value with `--json`, otherwise the text. */
  readonly print: (value: unknown, text: Layout) => void;
  readonly printItem: (item: object) => void;
  readonly printList: (items: readonly object[], columns: readonly string[]) => void;
  /** Prints one line: the value as JSON with `--json`, otherwise the text. */
  readonly printLine: (value: unknown, text: string) => void;
  readonly terminal: Terminal;
  /** Whether `--json` was given. */
  readonly wantsJson: () => boolean;
  readonly width: () => number | undefined;
}
