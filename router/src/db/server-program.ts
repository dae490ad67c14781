/** Runs programs of the embedded server as its user, in their own session, and logs their output. */
import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { StartError } from "@weiche/shared/files/start-error.ts";
import type { EmbeddedHome } from "./embedded-home.ts";

const logBytesMax = 16 << 20;

export function startProgram(home: EmbeddedHome, program: string, args: readonly string[]) {
  const log = openLog(home.directory);
  const child = spawn(program, args, {
    ...home.user,
    cwd: home.directory,
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" },
    detached: true,
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  const exit = new Promise<number>((resolve, reject) => {
    child.once("error", (error) => reject(new StartError(`cannot run ${program}: ${error.message}`)));
    child.once("exit", (code) => resolve(code ?? 1));
  });
  return { child, exit };
}

function openLog(directory: string): number {
  const file = join(directory, "postgres.log");
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > logBytesMax) renameSync(file, `${file}.1`);
  return openSync(file, "a", 0o600);
}

/** Finds the reason why the server ended in the last lines of its log. */
export function lastWords({ directory }: Pick<EmbeddedHome, "directory">): string {
  const file = join(directory, "postgres.log");
  const lines = readFileSync(file, "utf8").trim().split("\n");
  const last = lines.findLastIndex((text) => /FATAL|PANIC|error:/.test(text));
  // PostgreSQL logs a full disk in a separate line, before the resulting PANIC.
  const isFull = lines.slice(Math.max(0, last - 2)).some((text) => /No space left|Check free disk space/.test(text));
  const line = lines.at(last) ?? "";
  return `${isFull ? "the disk is full" : line.replace(/^.*?(FATAL|PANIC|error): +/, "")} (${file})`;
}
