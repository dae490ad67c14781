/**
 * Commands that use the database directly: a backup takes none of the router's time, and a restore needs the router to be
 * stopped. Their modules are loaded when they run, because they would slow down every other command.
 */
import { counted, megabytes } from "@weiche/shared/program/amounts.ts";
import { createReadStream } from "node:fs";
import { join } from "node:path";
import { InvalidArgumentError, Option, type Command } from "commander";
import { requireReadable } from "@weiche/shared/files/start-error.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import type { BackupDone } from "../../../backup/backup-run.ts";
import type { Actions } from "../actions.ts";

interface Where {
  readonly config?: string;
}

const configOption = () =>
  new Option("--config <file>", "router.yaml, needed if its database is not the embedded one").env("WEICHE_CONFIG");

export function addBackupCommands(program: Command, actions: Actions, env: NodeJS.ProcessEnv): void {
  const stateDir = () => join(program.opts<{ dataDir: string }>().dataDir, "router");

  /** Finds the router's database. */
  async function databaseOf({ config }: Where): Promise<{ readonly stateDir: string; readonly databaseUrl?: string }> {
    if (config === undefined) return { stateDir: stateDir() };
    const { loadDatabaseUrl } = await import("../../../config/config.ts");
    const { ownCredential } = await import("@weiche/shared/files/private-file.ts");
    const databaseUrl = loadDatabaseUrl(config, (secret) => ownCredential(secret, env));
    return { stateDir: stateDir(), ...(databaseUrl && { databaseUrl }) };
  }

  program
    .command("backup")
    .argument("[file]", "the new file, or - for standard output")
    .description("Back up the whole database to a file while the router runs.")
    .addOption(new Option("--to <folder>", "write a file named after the time into this folder"))
    .addOption(
      new Option("--keep <count>", "with --to: number of backups to keep; older ones are deleted")
        .argParser(readCount)
        .default(14),
    )
    .addOption(configOption())
    .action(async (file: string | undefined, options: Where & { readonly to?: string; readonly keep: number }) => {
      const { to: folder, keep } = options;
      if ((file === undefined) === (folder === undefined))
        program.error("error: give either a file or a folder (--to)", { code: "weiche.backup", exitCode: 2 });
      const { stateDir: state, databaseUrl } = await databaseOf(options);
      const { runningServer } = await import("../../../db/embedded-server.ts");
      const { backUpInto, backUpTo } = await import("../../../backup/backup-run.ts");
      const { primaryOf } = await import("../../../db/database-hosts.ts");
      const connection =
        databaseUrl === undefined ? await runningServer(state) : { connectionString: await primaryOf(databaseUrl) };
      const progress = progressLine(actions);
      const backUp = (path: string) =>
        backUpTo(path, connection, actions.terminal.output, ({ bytes, bytesTotal, table }) =>
          progress.show(`${table}: ${megabytes(bytes)} of about ${megabytes(bytesTotal)}`),
        );
      const done: BackupDone =
        folder === undefined ? await backUp(file!) : await backUpInto(folder, keep, systemClock.now(), backUp);
      progress.end();
      if (done.file === "-") return;
      const removed = done.removed?.length ? `; deleted ${done.removed.length} older` : "";
      actions.print(done, () => `${done.file}: ${megabytes(done.bytes!)}, the database as of ${done.at}${removed}`);
    });

  program
    .command("restore")
    .argument("<file>", "the backup, or - for standard input")
    .description("Restore a backup into an empty data directory or database. The router must be stopped.")
    .option(
      "--audit-log <file...>",
      "the router's logs since the backup; repeats their revocations, blocks and deletions",
    )
    .option("--check", "only read the whole backup and verify its checksum")
    .addOption(configOption())
    .action(
      async (file: string, options: Where & { readonly auditLog?: readonly string[]; readonly check?: boolean }) => {
        const { checkBackup, restoreInto } = await import("../../../backup/restore-run.ts");
        for (const read of [...(file === "-" ? [] : [file]), ...(options.auditLog ?? [])]) requireReadable(read);
        const source = file === "-" ? actions.terminal.input : createReadStream(file);
        if (options.check) {
          const { header, rows } = await checkBackup(source);
          const { at, version } = header;
          return actions.print(
            { at, version, rows },
            () => `a complete backup by Weiche ${version}, the database as of ${at}: ${counted(rows, "row")}`,
          );
        }
        const progress = progressLine(actions);
        const { header, rows, replayed } = await restoreInto(
          source,
          await databaseOf(options),
          options.auditLog ?? [],
          ({ table, number, tables }) => progress.show(`${table} (${number} of ${tables})`),
        );
        progress.end();
        const { at, version } = header;
        actions.print({ at, version, rows, ...replayed }, () =>
          [
            `restored the database as of ${at}: ${counted(rows, "row")}`,
            ...(options.auditLog === undefined
              ? [
                  "Without --audit-log, later revocations, blocks and deletions are undone. Repeat them by the router's log.",
                ]
              : [
                  `repeated from the audit log: ${countsText(replayed.repeated)}`,
                  `lost since the backup: ${countsText(replayed.lost)}`,
                ]),
            "Everybody must sign in again. Once the router runs, nodes resend the usage records that they still hold (usageKeepHours).",
          ].join("\n"),
        );
      },
    );
}

function readCount(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1) throw new InvalidArgumentError("It must be a whole number from 1.");
  return count;
}

function countsText(counts: Readonly<Record<string, number>>): string {
  return (
    Object.entries(counts)
      .map(([action, count]) => `${count} × ${action}`)
      .join(", ") || "nothing"
  );
}

/** Redraws one line on a terminal, at most ten times a second. */
function progressLine({ terminal: { errors } }: Actions) {
  let shownAtMs = -Infinity;
  return {
    show(text: string): void {
      const nowMs = performance.now();
      if (!errors.isTTY || nowMs - shownAtMs < 100) return;
      shownAtMs = nowMs;
      errors.write(`\r\u001b[K${text}`);
    },
    end: () => void (errors.isTTY && errors.write("\r\u001b[K")),
  };
}
