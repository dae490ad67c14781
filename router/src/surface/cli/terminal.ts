/** The terminal: the process's streams, or a test's. */
import { createInterface } from "node:readline/promises";
import type { Readable, Writable } from "node:stream";

export interface Terminal {
  readonly input: Readable & { readonly isTTY?: boolean };
  readonly output: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly errors: Writable & { readonly isTTY?: boolean };
}

export const processTerminal: Terminal = { input: process.stdin, output: process.stdout, errors: process.stderr };

/** Returns the width for tables: the terminal's, or `COLUMNS`. Undefined for a pipe or file, which gets whole lines. */
export function widthOf({ output }: Terminal, env: NodeJS.ProcessEnv): number | undefined {
  const columns = Number(env["COLUMNS"]);
  return output.columns ?? (Number.isInteger(columns) && columns > 0 ? columns : undefined);
}

/** Whether a person can be asked. */
export function canAsk({ input, errors }: Terminal): boolean {
  return Boolean(input.isTTY && errors.isTTY);
}

/** Asks a question. Every answer except `y` and `yes` means no. */
export async function confirmed({ input, errors }: Terminal, question: string): Promise<boolean> {
  using lines = createInterface({ input, output: errors });
  const ended = new AbortController();
  lines.once("close", () => ended.abort());
  // The end of the input means no.
  const answer = await lines.question(`${question} [y/N] `, { signal: ended.signal }).catch(() => "");
  return /^\s*y(es)?\s*$/i.test(answer);
}
