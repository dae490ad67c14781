/** An attack with a key, within its limits: as many requests at once as the package has, each for as many answers as may be. */
import { paceMs } from "./paced-streams.ts";
import { postFrom, type Attack, type Target } from "./attack.ts";

const answersMax = 8;
const tokens = 400;
/** How long the longer answers last at the pace of the engine: whoever waits behind them waits for long. */
export const answerMs = tokens * paceMs;
/** More than the package allows at once. */
const linesAtOnce = 20;

/** Stands for a connection that the router closed, since the address is over its limit. */
const closed = 0;
const limits: ReadonlySet<number> = new Set([429, 503, closed]);

export const manyAnswers: Attack = {
  name: "many answers to each request, with a key",
  async prepare(cluster) {
    const { apiKey } = await cluster.account("Many");
    return { apiKey };
  },
  async run(target, signal) {
    const tally = { answered: 0, refused: 0, limited: 0, wrong: 0 };
    const lines = Array.from({ length: linesAtOnce }, async (_, line) => {
      for (let n = line; n === line || !signal.aborted; n++) {
        // Few at first, so that one is answered however short the attack is.
        const answers = n % 4 === 0 ? answersMax * 8 : answersMax;
        const status = await post(target, answers, n === line ? 1 : tokens, signal).catch(() => closed);
        if (signal.aborted && n > line) break;
        if (limits.has(status)) tally.limited++;
        else if (status !== (answers > answersMax ? 400 : 200)) tally.wrong++;
        else if (answers > answersMax) tally.refused++;
        else tally.answered++;
      }
    });
    await Promise.all(lines);
    return tally;
  },
  mistakes({ tally: { answered = 0, refused = 0, wrong = 0 } }) {
    const mistakes = wrong === 0 ? [] : [`${wrong} requests were not answered as they should be`];
    return answered > 0 && refused > 0 ? mistakes : [...mistakes, `${answered} were answered, ${refused} refused`];
  },
};

/** Resolves to the status. */
function post(
  { apiPort, localAddress, given }: Target,
  n: number,
  length: number,
  signal: AbortSignal,
): Promise<number> {
  const messages = [{ role: "user", content: `sim:tokens=${length}` }];
  const headers = { authorization: `Bearer ${given["apiKey"]}` };
  return postFrom(localAddress, apiPort, "/v1/chat/completions", JSON.stringify({ model: "sim", messages, n }), {
    headers,
    // The first ones are waited for.
    ...(length > 1 && { signal }),
  });
}
