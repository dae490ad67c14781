/** `weiche requests`, `top` and `explain`: show running and ended requests of the API, never their content. */
import { counted } from "@weiche/shared/program/amounts.ts";
import { CommanderError, Option, type Command } from "commander";
import type { Actions } from "../actions.ts";
import { explainText } from "./explain-text.ts";
import { addTopCommand } from "./top-command.ts";
import type { Answer, Sent } from "../client.ts";
import { endedOutcomes, type EndedOutcome } from "../../../usage/requests/outcomes.ts";
import { formatTable, type Cell } from "@weiche/shared/program/table.ts";
import { inWords } from "@weiche/shared/program/duration.ts";
import { accountHelp, wrapped } from "../cli-text.ts";
import { watch, type Scene } from "../watch.ts";

interface RequestsOptions {
  readonly live?: boolean;
  readonly here?: boolean;
  readonly watch?: boolean;
  readonly account?: string;
  readonly model?: string;
  readonly node?: string;
  readonly user?: string;
  readonly key?: string;
  readonly code?: string;
  readonly before?: string;
  readonly outcome?: EndedOutcome;
  readonly limit: string;
}

type Running = Answer<"listRunning">;
type Ended = Answer<"listEnded">;
type Past = Answer<"listPast">;

const stalledNeedsHere =
  "--outcome stalled is missing --here: the database lists clients that did not read as client-gone";

/** Options of lists from a router's memory. The database knows more. */
const inMemory = ["live", "here"];

export function addRequestCommands(program: Command, actions: Actions): void {
  const { ask, print } = actions;
  program
    .command("requests")
    .description("List the ended requests of all routers, newest first, or with --live this router's running ones.")
    .option("--live", "list this router's running requests, oldest first")
    .addOption(
      new Option(
        "--here",
        "list the last ended requests in this router's memory, also those of unknown keys and of the last seconds",
      ).conflicts("live"),
    )
    .option("--watch", "with --live: refresh every second until Ctrl-C")
    .option("--account <account>", `only this account's requests (${accountHelp})`)
    .option("--model <model>", "only requests for this model")
    .option("--node <node>", "only requests sent to this node")
    .addOption(
      new Option("--outcome <outcome>", "only requests that ended this way").choices(endedOutcomes).conflicts("live"),
    )
    .addOption(new Option("--user <user>", "only this user's requests").conflicts(inMemory))
    .addOption(new Option("--key <key>", "only requests with this key").conflicts(inMemory))
    .addOption(new Option("--code <code>", "only requests refused with this code").conflicts(inMemory))
    .addOption(new Option("--before <id>", "only requests before this one, to continue a list").conflicts(inMemory))
    .option("--limit <requests>", "maximum number of requests, at most 1000", "50")
    .action(async ({ live, here, watch: wish, outcome, ...query }: RequestsOptions) => {
      const running = async () => ask("listRunning", { query } satisfies Sent);
      if (live && wish) return void (await watch(actions, async () => runningScene(await running())));
      if (live) {
        const seen = await running();
        return print(seen, (width) => runningText(seen, width));
      }
      if (here) {
        const ended = await ask("listEnded", { query: { ...query, outcome } });
        return print(ended, (width) => endedText(ended, width));
      }
      if (outcome === "stalled") throw new CommanderError(2, "weiche.outcome", stalledNeedsHere);
      const past = await ask("listPast", { query: { ...query, outcome } });
      print(past, (width) => pastText(past, width));
    });
  program
    .command("explain")
    .description("Explain a request: refusal, waiting time, nodes tried, cost.")
    .argument("<request-id>", "the answer's `x-request-id` or `id`, or its start")
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

/** The first column is the request's id. Wide terminals alone get the columns from ACCOUNT on. */
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

function pastText({ items, next, searchedTo, days }: Past, width?: number): string {
  const rows = items.map((one) => [
    ...[one.id, one.model, one.outcome, one.status, one.code],
    ...[one.requests > 1 ? `${one.requests} alike` : inWords(one.seconds), one.credits],
    ...[one.account.name ?? one.account.id, one.key.id, one.at, one.node, one.promptTokens, one.completionTokens],
    one.firstTokenSeconds === null ? null : inWords(one.firstTokenSeconds),
  ]);
  const narrow = ["ID", "MODEL", "OUTCOME", "STATUS", "REASON", "TOOK", "CREDITS"];
  const wide = ["ACCOUNT", "KEY", "ACCEPTED", "NODE", "INPUT", "OUTPUT", "FIRST TOKEN"];
  const older = next === null ? `Requests are listed for ${days} days.` : `Before ${searchedTo}: --before ${next}`;
  const table = items.length > 0 ? requestTable([...narrow, ...wide], rows, width) : "none";
  return `${table}\n\n${wrapped(older)}\n${wrapped("Requests of the last seconds and of unknown keys: --here")}`;
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
  return wrapped(
    `This router remembers ${counted(requests, "request")}${oldest}. It keeps at most ${requestsMax}, and none from before its start.`,
  );
}
