/**
 * Requests streams from this host's router without pause until a signal, then waits for running answers and exits.
 * `node client-load.ts URL KEY CLIENTS FILE` writes each answer as a line of FILE.
 */
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { ask, type Answer } from "../../e2e/cluster/api-client.ts";

/** One answer, as its client saw it. */
export type SeenAnswer = Pick<Answer, "status" | "ending" | "sentAtMs" | "endedAtMs" | "usage">;

const [baseUrl, apiKey, clients, file] = process.argv.slice(2) as [string, string, string, string];
const stopped = new AbortController();
process.once("SIGTERM", () => stopped.abort());
const question = {
  model: "tiny-chat",
  max_tokens: 600,
  stream: true,
  stream_options: { include_usage: true },
  messages: [{ role: "user", content: "Tell me a long story." }],
};

await Promise.all(Array.from({ length: Number(clients) }, askAgainAndAgain));

async function askAgainAndAgain(): Promise<void> {
  while (!stopped.signal.aborted) {
    const { status, ending, sentAtMs, endedAtMs, usage } = await ask(
      { baseUrl, apiKey },
      "/chat/completions",
      question,
    );
    appendFileSync(file, `${JSON.stringify({ status, ending, sentAtMs, endedAtMs, usage } satisfies SeenAnswer)}\n`);
    if (ending !== "whole") await sleep(250);
  }
}
