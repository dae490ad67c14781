import { pino, type Logger } from "pino";
import { isJournal, priorityOf } from "./journal.ts";
import { plainJson } from "./plain-text.ts";

export type Log = Logger;

/**
 * Logs JSON lines to stdout, asynchronously, so that a slow terminal never delays a stream. Nothing that a client sent
 * is ever logged: callers pass ids, names from closed sets and numbers. For the journal of systemd each line begins with
 * its priority, `<3>` for an error.
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

/** The fields of an error that may be logged: name, message, code; never a body. */
export function describeError(error: unknown): { readonly error: string; readonly code?: string } {
  if (!(error instanceof Error)) return { error: String(error) };
  const code = (error as { code?: unknown }).code;
  const text = `${error.name}: ${error.message}`;
  return typeof code === "string" ? { error: text, code } : { error: text };
}
