/** Asks for consent to a sum before it is charged. */
import { Failed } from "./client.ts";
import { canAsk, confirmed, type Terminal } from "./terminal.ts";

/** Asks on a terminal. Throws `Failed` if the answer is no, or nobody can be asked. `charge`: what happens, with the sum. */
export async function agree(charge: string, terminal: Terminal): Promise<void> {
  if (!canAsk(terminal)) throw new Failed(`${charge}: say --yes to agree; nothing was changed`);
  if (!(await confirmed(terminal, `${charge}. Go on?`))) throw new Failed("nothing was changed");
}

export function euros(cents: number): string {
  return `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, "0")} EUR`;
}
