/**
 * An attack with a key, within its limits: as many concurrent requests as the package allows, each for the largest
 * number of answers.
 */
import { paceMs } from "./paced-streams.ts";
import { postFrom, type Attack, type Target } from "./attack.ts";

const answersMax = 8;
const tokens = 400;
/** The duration of the longer answers at the engine's pace. Waiters behind them wait long. */
export const answerMs = tokens * paceMs;
/** More than the package allows at the same time. */
const linesAtOnce = 20;

/** Replaces the status if the router closed the connection because the address exceeded its limit. */
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
        // Few at first, so that one is answered even in a short attack.
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
  missing({ tally: { answered = 0, refused = 0 } }) {
    return answered > 0 && refused > 0 ? [] : [`${answered} were answered, ${refused} refused`];
  },
  mistakes: ({ tally: { wrong = 0 } }) => (wrong === 0 ? [] : [`${wrong} requests got a wrong answer`]),
};

/** Resolves with the status. */
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
    // Awaits the first requests.
    ...(length > 1 && { signal }),
  });
}
