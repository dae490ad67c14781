/** Runs three routers' ledgers as processes on one embedded database, and reads what it contains afterwards. */
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "pg";
import { openClient } from "@weiche/router/src/db/client.ts";
import { reachableDirectory } from "../cluster/cluster.ts";
import { startSharedDatabase } from "../cluster/shared-database.ts";
import { insertUsageAccounts } from "../cluster/usage-source.ts";
import type { FromWriter, ToWriter, WriterTally } from "./usage-writer.ts";

interface WritersOptions {
  readonly seconds: number;
  /** The record rate of all writers together. */
  readonly recordsPerSecond: number;
  /** A module that each writer preloads. */
  readonly preload?: string;
}

export interface WritersRun {
  /** The distinct records committed in each second until the last acknowledgement. */
  readonly recordsPerSecond: number;
  /** The records that the writers made. `copied` of them were also sent to a second writer. */
  readonly made: { readonly records: number; readonly credits: bigint };
  readonly copied: number;
  /** The records that the ledgers reported as committed. `repeated` of them were repetitions. */
  readonly committed: number;
  readonly repeated: number;
  readonly failures: readonly string[];
  /** The records in the database. */
  readonly stored: { readonly records: number; readonly credits: bigint };
  /** The sums of periods or days that differ from the sums of the records. */
  readonly wrongSums: number;
  readonly deadlocks: number;
}

const writers = 3;

export async function writeUsage(options: WritersOptions): Promise<WritersRun> {
  await using opened = new AsyncDisposableStack();
  const directory = reachableDirectory("weiche-usage-writers-");
  opened.defer(() => rmSync(directory, { recursive: true, force: true }));
  const { url, connection } = opened.use(await startSharedDatabase(directory));
  const all = Array.from({ length: writers }, (_, n) => new Writer(url, n, options.preload));
  for (const writer of all) opened.defer(() => writer.kill());
  for (const [n, writer] of all.entries()) writer.onCopies = (copies) => all[(n + 1) % writers]!.tell(copies);
  await Promise.all(all.map(({ ready }) => ready));
  await using client = await openClient(connection);
  await insertUsageAccounts(client);

  const beganMs = performance.now();
  const { seconds, recordsPerSecond } = options;
  for (const writer of all) writer.tell({ kind: "begin", seconds, recordsPerSecond: recordsPerSecond / writers });
  await Promise.all(all.map(({ made }) => made));
  const elapsedMs = performance.now() - beganMs;
  for (const writer of all) writer.tell({ kind: "end" });
  const tallies = await Promise.all(all.map(({ tally }) => tally));
  await Promise.all(all.map((writer) => writer.gone()));

  const sum = (of: (tally: WriterTally) => number) => tallies.reduce((total, tally) => total + of(tally), 0);
  const records = sum(({ made }) => made);
  return {
    recordsPerSecond: Math.round((records / elapsedMs) * 1_000),
    made: { records, credits: tallies.reduce((total, { credits }) => total + credits, 0n) },
    copied: sum(({ copied }) => copied),
    committed: sum(({ committed }) => committed),
    repeated: sum(({ repeated }) => repeated),
    failures: tallies.flatMap(({ failures }) => failures),
    ...(await look(client)),
  };
}

async function look(client: Client): Promise<Pick<WritersRun, "stored" | "wrongSums" | "deadlocks">> {
  const { rows } = await client.query<Record<"records" | "credits" | "wrong" | "deadlocks", string>>(lookSql);
  const { records, credits, wrong, deadlocks } = rows[0]!;
  return {
    stored: { records: Number(records), credits: BigInt(credits) },
    wrongSums: Number(wrong),
    deadlocks: Number(deadlocks),
  };
}

const totalKeys = "account_id, period_start, scope, subject";
const dayKeys = "account_id, day, period_start, user_id, key_id, model";
const sums = "count(*), sum(prompt_tokens), sum(completion_tokens), sum(credits)";
const stored = "requests, prompt_tokens, completion_tokens, credits";
const scopes = `(values ('account', ''), ('user', user_id::text), ('key', key_id::text), ('model', model)) s (scope, subject)`;

/** Selects the rows that only one of two tables has. */
function unlike(one: string, other: string): string {
  return `(select count(*) from ((${one} except ${other}) union all (${other} except ${one})) rows)`;
}

/** The days are the finest sums. If they are right, totals can be compared with them. */
const lookSql = `select
  (select count(*) from usage_records) as records,
  (select sum(credits) from usage_records) as credits,
  ${unlike(`select ${dayKeys}, ${sums} from usage_records group by ${dayKeys}`, `select ${dayKeys}, ${stored} from usage_days`)}
  + ${unlike(
    `select ${totalKeys}, sum(requests), sum(prompt_tokens), sum(completion_tokens), sum(credits)
     from usage_days cross join lateral ${scopes} group by ${totalKeys}`,
    `select ${totalKeys}, ${stored} from usage_totals`,
  )} as wrong,
  (select deadlocks from pg_stat_database where datname = current_database()) as deadlocks`;

class Writer {
  readonly #child: ChildProcess;
  readonly #told = {
    ready: Promise.withResolvers<void>(),
    made: Promise.withResolvers<void>(),
    tally: Promise.withResolvers<WriterTally>(),
  };
  onCopies: (copies: Extract<FromWriter, { readonly kind: "copies" }>) => void = () => {};

  constructor(databaseUrl: string, index: number, preload?: string) {
    const execArgv = preload === undefined ? [] : [`--import=${preload}`];
    const file = join(import.meta.dirname, "usage-writer.ts");
    this.#child = fork(file, [databaseUrl, String(index)], { execArgv, serialization: "advanced" });
    this.#child.on("message", (message: FromWriter) => this.#hear(message));
    this.#child.once("exit", (code, signal) => {
      for (const { promise, reject } of Object.values(this.#told)) {
        promise.catch(() => {}); // a rejection before anyone awaits it must not end the process
        reject(new Error(`writer ${index} ended (${signal ?? code})`));
      }
    });
  }

  get ready(): Promise<void> {
    return this.#told.ready.promise;
  }

  /** Resolves when all records that it made are acknowledged. */
  get made(): Promise<void> {
    return this.#told.made.promise;
  }

  get tally(): Promise<WriterTally> {
    return this.#told.tally.promise;
  }

  tell(message: ToWriter): void {
    this.#child.send(message);
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  async gone(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, "exit");
  }

  #hear(message: FromWriter): void {
    switch (message.kind) {
      case "ready":
      case "made":
        return this.#told[message.kind].resolve();
      case "copies":
        return this.onCopies(message);
      case "tally":
        return this.#told.tally.resolve(message.tally);
    }
  }
}
