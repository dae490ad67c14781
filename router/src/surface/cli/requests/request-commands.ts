/** `weiche requests`, `top` and `explain`: show running and ended requests of the API, never their content. */
import { Option, type Command } from "commander";
import type { Actions } from "../actions.ts";
import { explainText } from "./explain-text.ts";
import { addTopCommand } from "./top-command.ts";
import type { Answer, Sent } from "../client.ts";
import { formatTable, type Cell } from "@weiche/shared/program/table.ts";
import { inWords } from "@weiche/shared/program/duration.ts";
import { accountHelp, wrapped } from "../cli-text.ts";
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
    .description("List this router's last ended requests, newest first, or with --live its running ones, oldest first.")
    .option("--live", "list running requests")
    .option("--watch", "with --live: refresh every second until Ctrl-C")
    .option("--account <account>", `only this account's requests (${accountHelp})`)
    .option("--model <model>", "only requests for this model")
    .option("--node <node>", "only requests sent to this node")
    .addOption(
      new Option("--outcome <outcome>", "only requests that ended this way").choices(outcomes).conflicts("live"),
    )
    .option("--limit <requests>", "maximum number of requests, at most 1000", "50")
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
    .description("Explain a request: refusal, waiting time, nodes tried, cost.")
    .argument("<request-id>", "the answer's `x-request-id`, or its start")
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
    ...[one.position, one.estimateSeconds === undefined ? undefined : inWords(one.estimateSeconds)],
    ...[one.tokensPerSecond, one.accountId, one.keyId],
  ]);
  const headers = ["ID", "MODEL", "NODE", "STATE", "AGE", "POS", "LEFT", "TOKENS/S", "ACCOUNT", "KEY"];
  const notes = [
    `${total} running${items.length < total ? `, the oldest ${items.length} shown` : ""}`,
    ...(silentNodes.length > 0 ? [`no answer about requests from ${silentNodes.join(", ")}`] : []),
  ];
  return [...notes, ...(items.length > 0 ? ["", requestTable(headers, rows, width)] : [])].join("\n");
}

function stateWord({ state, waitsFor }: Running["items"][number]): string {
  return waitsFor === undefined ? state : `waits: ${waitsFor}`;
}

/** Up to this width of the terminal, ids are shortened, and account and key are left out. */
const narrowMax = 132;
/** The part of an id that is its time in ms. It identifies the request, and `explain` accepts it. */
const idStart = 13;

/** The first column is the request's id, and the last ones, from ACCOUNT on, are ids, too. */
function requestTable(
  headers: readonly string[],
  rows: readonly (readonly Cell[])[],
  width: number = Infinity,
): string {
  if (width > narrowMax) return formatTable(headers, rows, width);
  const columns = headers.indexOf("ACCOUNT");
  const narrow = rows.map(([id, ...more]) => [String(id).slice(0, idStart), ...more.slice(0, columns - 1)]);
  return formatTable(headers.slice(0, columns), narrow, width);
}

function endedText({ items, memory }: Ended, width?: number): string {
  const rows = items.map((one) => [
    ...[one.id, one.model, one.tried.at(-1)?.node, one.outcome, one.status, one.refusal ?? one.code],
    ...[inWords(one.seconds), one.accountId],
  ]);
  const table = requestTable(["ID", "MODEL", "NODE", "OUTCOME", "STATUS", "REASON", "TOOK", "ACCOUNT"], rows, width);
  return `${items.length > 0 ? table : "none"}\n\n${memoryText(memory)}`;
}

function memoryText({ requests, requestsMax, since }: Ended["memory"]): string {
  const oldest = since === null ? "" : `, the oldest ended ${since}`;
  const many = requests === 1 ? "1 request" : `${requests} requests`;
  return wrapped(
    `This router remembers ${many}${oldest}. It keeps at most ${requestsMax}, and none from before its start.`,
  );
}
