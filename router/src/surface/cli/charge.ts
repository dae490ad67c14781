/** Asks the operator to agree before an amount is charged. */
import { Failed } from "./client.ts";
import { canAsk, confirmed, type Terminal } from "./terminal.ts";

/** Asks on a terminal. Throws `Failed` if the answer is no or there is no terminal. `charge`: the sentence with the amount. */
export async function agree(charge: string, terminal: Terminal): Promise<void> {
  if (!canAsk(terminal)) throw new Failed(`${charge}: add --yes to agree; nothing was changed`);
  if (!(await confirmed(terminal, `${charge}. Go on?`))) throw new Failed("nothing was changed");
}

export function euros(cents: number): string {
  return `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, "0")} EUR`;
}
