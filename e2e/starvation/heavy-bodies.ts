/**
 * An attack with a key, within its limits: bodies of up to a megabyte that are slow to parse. Some have too many
 * values.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { postFrom, type Attack, type Target } from "./attack.ts";

const bytesMax = 1_000_000;
/** Ten loops with one request per second each, which is the limit of one address. */
const linesAtOnce = 10;
const lineEveryMs = 1_000;
const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
const filled = (item: string, bytes: number) =>
  `[${`${item},`.repeat(Math.floor(bytes / (item.length + 1)) - 1)}${item}]`;
const members = (count: number) => `{${Array.from({ length: count }, (_, at) => `"m${at}":1`).join()}}`;

/** Replaces the status if the router closed the connection during the body, because the address exceeded its limit. */
const closed = 0;
const limits: ReadonlySet<number> = new Set([429, 503, closed]);

/** A value in the body, and whether the router must refuse it. */
const kinds: readonly { readonly extra: string; readonly isTooMuch: boolean }[] = [
  { extra: filled(nested(60), bytesMax), isTooMuch: true },
  { extra: filled("[]", bytesMax), isTooMuch: true },
  { extra: filled(nested(60), 60_000), isTooMuch: false },
  { extra: members(30_000), isTooMuch: false },
  { extra: `"${"\\u00e4".repeat(bytesMax / 6)}"`, isTooMuch: false },
];

export const heavyBodies: Attack = {
  name: "bodies that are slow to read, with a key",
  async prepare(cluster) {
    const { apiKey } = await cluster.account("Heavy");
    return { apiKey };
  },
  async run(target, signal) {
    const tally = { answered: 0, refused: 0, limited: 0, wrong: 0 };
    const lines = Array.from({ length: linesAtOnce }, async (_, line) => {
      // Each kind is answered at least once, even on a slow machine.
      for (let n = line; n === line || !signal.aborted; n++) {
        const { extra, isTooMuch } = kinds[n % kinds.length]!;
        const next = sleep(lineEveryMs);
        const status = await post(target, extra).catch(() => closed);
        if (limits.has(status)) tally.limited++;
        else if (status !== (isTooMuch ? 400 : 200)) tally.wrong++;
        else if (isTooMuch) tally.refused++;
        else tally.answered++;
        await next;
      }
    });
    await Promise.all(lines);
    return tally;
  },
  missing({ tally: { answered = 0, refused = 0 } }) {
    return answered > 0 && refused > 0 ? [] : [`${answered} were answered, ${refused} refused`];
  },
  mistakes: ({ tally: { wrong = 0 } }) => (wrong === 0 ? [] : [`${wrong} bodies got a wrong answer`]),
};

/** Resolves with the status. */
function post({ apiPort, localAddress, given }: Target, extra: string): Promise<number> {
  const body = `{"model":"sim","messages":[{"role":"user","content":"sim:tokens=1"}],"x":${extra}}`;
  const headers = { authorization: `Bearer ${given["apiKey"]}` };
  return postFrom(localAddress, apiPort, "/v1/chat/completions", body, { headers });
}
