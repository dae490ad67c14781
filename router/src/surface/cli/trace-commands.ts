/** `weiche usage export --trace` and `weiche usage trace`: write a trace of requests, and check one. */
import { counted } from "@weiche/shared/program/amounts.ts";
import { createHmac, randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Command } from "commander";
import { spanText } from "../../simulate/loads/span-text.ts";
import type { LoadStatistics } from "../../simulate/loads/load-statistics.ts";
import type { Trace } from "../../simulate/loads/trace.ts";
import type { Actions } from "./actions.ts";
import type { Answer } from "./client.ts";
import { listText } from "./cli-text.ts";

export function addTraceCommands(usage: Command, actions: Actions): void {
  usage
    .command("export")
    .description("Write the requests of all accounts as lines of JSON: times, tokens, models and hashed accounts.")
    .requiredOption("--trace", "requests by the time of acceptance, without content")
    .option("--from <date>", "first day, such as 2027-01-31 (German time); by default the last 7 days")
    .option("--to <date>", "last day, included (German time)")
    // The group has options of the same names, which take their values.
    .action((_days: Days, command: Command) => exportTrace(command.optsWithGlobals(), actions));
  usage
    .command("trace")
    .argument("<file>", "a trace of Weiche, Azure, BurstGPT or Mooncake, or a folder with ServeGen's client files")
    .description("Check a trace of requests and show its rates, lengths and bursts.")
    .option("--model <model>", "the model of its requests, if the trace names none")
    .action((file: string, { model }: { readonly model?: string }) => showTrace(file, model, actions));
}

type Days = Readonly<Partial<Record<"from" | "to", string>>>;

async function exportTrace({ from, to }: Days, { ask, terminal }: Actions): Promise<void> {
  const salt = randomBytes(32);
  let after: string | undefined;
  let requests = 0;
  do {
    const page = await ask("traceUsage", { query: { from, to, after } });
    const lines = page.items.map((request) => lineOf(request, salt)).join("");
    if (!terminal.output.write(lines)) await once(terminal.output, "drain");
    requests += page.items.length;
    after = page.after ?? undefined;
  } while (after !== undefined);
  if (requests === 0) terminal.errors.write("nobody sent a request in these days, so nothing was written\n");
}

/** The salt is forgotten after the export, so that nobody can find an account by its hash. */
function lineOf({ atMs, accountId, ...rest }: Answer<"traceUsage">["items"][number], salt: Buffer): string {
  const at = Temporal.Instant.fromEpochMilliseconds(atMs).toString({ smallestUnit: "millisecond" });
  const account = createHmac("sha256", salt).update(accountId).digest("hex").slice(0, 12);
  return `${JSON.stringify({ at, account, ...rest })}\n`;
}

/** The readers are loaded only here, because they would slow down every command. */
async function showTrace(file: string, model: string | undefined, { print }: Actions): Promise<void> {
  const { isFolder, openClientDay } = await import("../../simulate/loads/client-load.ts");
  const { openTrace } = await import("../../simulate/loads/trace.ts");
  const { loadStatistics } = await import("../../simulate/loads/load-statistics.ts");
  const { load, ...told } = isFolder(file) ? openClientDay(file, model) : openTrace(file, { model });
  const statistics = loadStatistics(load);
  print({ ...told, ...statistics }, (width) => traceText(told, statistics, width));
}

function traceText({ format, failed, assumed }: Omit<Trace, "load">, all: LoadStatistics, width?: number): string {
  const rows = [...all.models, ...(all.models.length > 1 ? [{ model: "all", ...all }] : [])];
  const columns = [
    "model",
    "requests",
    "perSecond",
    "inputMean",
    "inputP50",
    "inputP99",
    "outputMean",
    "outputP50",
    "outputP99",
  ];
  const table = rows.map(({ model, requests, perSecond, input, output }) => ({
    ...{ model, requests, perSecond: rounded(perSecond, 3) },
    ...{ inputMean: rounded(input.mean), inputP50: input.p50, inputP99: input.p99 },
    ...{ outputMean: rounded(output.mean), outputP50: output.p50, outputP99: output.p99 },
  }));
  return [
    `${format}: ${counted(all.requests, "request")} of ${counted(all.accounts, "account")} in ${spanText(1_000 * all.seconds)}`,
    listText(table, columns, width),
    `gaps between requests: coefficient of variation ${rounded(all.gapCv, 1)}; busiest minute: ${rounded(all.worstMinute, 1)} times the mean`,
    ...(all.repeatedShare > 0
      ? [`prompt tokens that repeat their conversation: ${rounded(100 * all.repeatedShare)} %`]
      : []),
    ...(failed > 0 ? [`left out, because they failed: ${counted(failed, "request")}`] : []),
    ...assumed.map((sentence) => `assumed: ${sentence}`),
  ].join("\n");
}

function rounded(value: number, places = 0): number {
  return Number(value.toFixed(places));
}
