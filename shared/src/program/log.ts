import { pino, type Logger } from "pino";
import { plainJson } from "./plain-text.ts";

export type Log = Logger;

/**
 * Logs JSON lines to stdout, asynchronously, so that a slow terminal never delays a stream. Nothing that a client sent
 * is ever logged: callers pass ids, names from closed sets and numbers.
 */
export function createLog(name: string, level: string = "info"): Log {
  return pino(
    {
      name,
      level,
      base: { name },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: plainJson },
    },
    pino.destination({ fd: 1, sync: false }),
  );
}

/** The fields of an error that may be logged: name, message, code; never a body. */
export function describeError(error: unknown): { readonly error: string; readonly code?: string } {
  if (!(error instanceof Error)) return { error: String(error) };
  const code = (error as { code?: unknown }).code;
  const text = `${error.name}: ${error.message}`;
  return typeof code === "string" ? { error: text, code } : { error: text };
}
