/** Priorities for the journal of systemd, which takes `<3>` at the beginning of a line as the line's priority. */
import { fstatSync } from "node:fs";

/** Whether the descriptor is the stream to the journal that systemd gave us, and not a pipe or file put in its place. */
export function isJournal(fd: number, { JOURNAL_STREAM }: NodeJS.ProcessEnv): boolean {
  if (!JOURNAL_STREAM) return false;
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true });
    return JOURNAL_STREAM === `${dev}:${ino}`;
  } catch {
    return false;
  }
}

/** The prefix of a line for each level, as sd-daemon(3) defines them. */
const priorities: Readonly<Record<string, string>> = {
  fatal: "<2>",
  error: "<3>",
  warn: "<4>",
  info: "<6>",
  debug: "<7>",
  trace: "<7>",
};

/** The prefix for a line of the log, whose first member is its level. */
export function priorityOf(line: string): string {
  return priorities[/^\{"level":"([a-z]+)"/.exec(line)?.[1] ?? ""] ?? "<6>";
}
