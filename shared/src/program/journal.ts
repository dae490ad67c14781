/** Priorities for systemd's journal, which reads `<3>` at the start of a line as its priority. */
import { fstatSync } from "node:fs";

/** Returns whether the descriptor is systemd's stream to the journal, not a pipe or file in its place. */
export function isJournal(fd: number, { JOURNAL_STREAM }: NodeJS.ProcessEnv): boolean {
  if (!JOURNAL_STREAM) return false;
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true });
    return JOURNAL_STREAM === `${dev}:${ino}`;
  } catch {
    return false;
  }
}

/** A line's prefix for each level, as defined in sd-daemon(3). */
const priorities: Readonly<Record<string, string>> = {
  fatal: "<2>",
  error: "<3>",
  warn: "<4>",
  info: "<6>",
  debug: "<7>",
  trace: "<7>",
};

/** Returns the prefix for a log line, whose first member is its level. */
export function priorityOf(line: string): string {
  return priorities[/^\{"level":"([a-z]+)"/.exec(line)?.[1] ?? ""] ?? "<6>";
}
