/** `weiche requests`, `top` and `explain`: the requests of the API, those that run and those that ended. Never content. */
import { Option, type Command } from "commander";
import type { Actions } from "../actions.ts";
import { explainText } from "./explain-text.ts";
import { addTopCommand } from "./top-command.ts";
import type { Answer, Sent } from "../client.ts";
import { formatTable } from "@weiche/shared/program/table.ts";
import { inWords } from "@weiche/shared/program/duration.ts";
import { wrapped } from "../cli-text.ts";
import { watch, type Scene } from "../watch.ts";

interface RequestsOptions {
  readonly live?: boolean;
  readonly watch?: boolean;
  readonly account?: string;
  readonly model?: string;
  readonly node?: string;
  readonly outcome?: string;
  readonly limit: string;
}

type Running = Answer<"listRunning">;
type Ended = Answer<"listEnded">;

const outcomes = ["answered", "refused", "client-gone", "broken", "timeout", "stalled"];

export function addRequestCommands(program: Command, actions: Actions): void {
  const { ask, print } = actions;
  program
    .command("requests")
    .description(
      "requests of this router that ended last, the youngest first; with --live those that run, the oldest first",
    )
    .option("--live", "those that run now")
    .option("--watch", "with --live: again every second, until Ctrl-C")
    .option("--account <id>")
    .option("--model <model>")
    .option("--node <node>")
    .addOption(new Option("--outcome <outcome>", "how they ended").choices(outcomes).conflicts("live"))
    .option("--limit <requests>", "at most 1000", "50")
    .action(async ({ live, watch: wish, outcome, ...query }: RequestsOptions) => {
      const running = async () => ask("listRunning", { query } satisfies Sent);
      if (live && wish) return void (await watch(actions, async () => runningScene(await running())));
      if (live) {
        const seen = await running();
        return print(seen, (width) => runningText(seen, width));
      }
      const ended = await ask("listEnded", { query: { ...query, outcome } });
      print(ended, (width) => endedText(ended, width));
    });
  program
    .command("explain")
    .description("what happened to one request: refused why, waited for what, which nodes it was sent to, what it cost")
    .argument("<request-id>", "the answer's `x-request-id`, or the beginning of it")
    .action(async (id: string) => {
      const seen = await ask("explainRequest", { id: id.toLowerCase() });
      print(seen, () => explainText(seen));
    });
  addTopCommand(program, actions);
}

function runningScene(seen: Running): Scene {
  const lines = seen.items.map(({ id, model, state, tried, waitsFor }) => {
    const where = tried.at(-1)?.node;
    const what = [model, where && `on ${where}`, state, waitsFor && `for a ${waitsFor}`];
    return [id, what.filter(Boolean).join(" ")] as const;
  });
  return { value: seen, text: (width) => runningText(seen, width), lines: new Map(lines) };
}

function runningText({ total, items, silentNodes }: Running, width?: number): string {
  const rows = items.map((one) => [
    ...[one.id, one.model, one.tried.at(-1)?.node, stateWord(one), inWords(one.seconds)],
    ...[one.tokensPerSecond, one.accountId, one.keyId],
  ]);
  const headers = ["ID", "MODEL", "NODE", "STATE", "AGE", "TOKENS/S", "ACCOUNT", "KEY"];
  const notes = [
    `${total} running${items.length < total ? `, the oldest ${items.length} shown` : ""}`,
    ...(silentNodes.length > 0 ? [`${silentNodes.join(", ")}: does not say how its requests stand`] : []),
  ];
  return [...notes, ...(items.length > 0 ? ["", formatTable(headers, rows, width)] : [])].join("\n");
}

function stateWord({ state, waitsFor, slotState }: Running["items"][number]): string {
  if (waitsFor === undefined) return state;
  return waitsFor === "place" ? "waits for a place" : `waits for a switch (${slotState})`;
}

function endedText({ items, memory }: Ended, width?: number): string {
  const rows = items.map((one) => [
    ...[one.id, one.model, one.tried.at(-1)?.node, one.outcome, one.status, one.refusal ?? one.code],
    ...[inWords(one.seconds), one.accountId],
  ]);
  const table = formatTable(["ID", "MODEL", "NODE", "OUTCOME", "STATUS", "REASON", "TOOK", "ACCOUNT"], rows, width);
  return `${items.length > 0 ? table : "none"}\n\n${memoryText(memory)}`;
}

function memoryText({ requests, requestsMax, since }: Ended["memory"]): string {
  const oldest = since === null ? "" : `, the oldest ended ${since}`;
  const many = requests === 1 ? "1 request" : `${requests} requests`;
  return wrapped(`This router remembers ${many}${oldest}; at most ${requestsMax}, none from before its start.`);
}
