/** One key within its limits: bodies of up to a megabyte that are slow to read, some of them with too many values. */
import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Attack, Target } from "./attack.ts";

const bytesMax = 1_000_000;
/** Together as many requests a second as an address may send. */
const linesAtOnce = 10;
const lineEveryMs = 1_000;
const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
const filled = (item: string, bytes: number) =>
  `[${Array(Math.floor(bytes / (item.length + 1)))
    .fill(item)
    .join()}]`;
const members = (count: number) => `{${Array.from({ length: count }, (_, at) => `"m${at}":1`).join()}}`;

/** Instead of a status: a connection may be closed while its body is sent, if its address is over its limit. */
const closed = 0;
const limits: ReadonlySet<number> = new Set([429, 503, closed]);

/** What a body holds besides a short question, and whether that is too much. */
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
      // Each kind is answered at least once, however slow the machine.
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
  mistakes({ tally: { answered = 0, refused = 0, wrong = 0 } }) {
    const mistakes = wrong === 0 ? [] : [`${wrong} bodies were not answered as they should be`];
    return answered > 0 && refused > 0 ? mistakes : [...mistakes, `${answered} were answered, ${refused} refused`];
  },
};

/** Resolves to the status. */
function post({ apiPort: port, localAddress, given }: Target, extra: string): Promise<number> {
  const body = `{"model":"sim","messages":[{"role":"user","content":"sim:tokens=1"}],"x":${extra}}`;
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${given["apiKey"]}`, "content-type": "application/json" };
    const options = { host: "127.0.0.1", port, path: "/v1/chat/completions", method: "POST", localAddress, headers };
    const asked = request({ ...options, agent: false }, (answer) => {
      answer.resume().on("error", reject);
      answer.on("end", () => resolve(answer.statusCode!));
    });
    asked.on("error", reject).end(body);
  });
}
