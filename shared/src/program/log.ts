import { pino, type Logger } from "pino";
import { isJournal, priorityOf } from "./journal.ts";
import { plainJson } from "./plain-text.ts";

export type Log = Logger;

/**
 * Logs JSON lines to stdout, asynchronously, so that a slow terminal does not delay streams. Text from clients is never
 * logged: callers pass ids, names from closed sets and numbers. For systemd's journal, each line begins with its
 * priority, such as `<3>` for an error.
 */
export function createLog(name: string, level: string = "info"): Log {
  const fd = 1;
  const toJournal = isJournal(fd, process.env);
  return pino(
    {
      name,
      level,
      base: { name },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: (line) => (toJournal ? priorityOf(line) : "") + plainJson(line) },
    },
    pino.destination({ fd, sync: false }),
  );
}

/** Returns the fields of an error that may be logged: name, message and code, never a body. */
export function describeError(error: unknown): { readonly error: string; readonly code?: string } {
  if (!(error instanceof Error)) return { error: String(error) };
  const code = (error as { code?: unknown }).code;
  const text = `${error.name}: ${error.message}`;
  return typeof code === "string" ? { error: text, code } : { error: text };
}
