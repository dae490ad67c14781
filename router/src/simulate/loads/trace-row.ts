/** One request as its trace gives it, and how fields of traces are read. */
import { nearest } from "@weiche/shared/files/config-file.ts";

/** A request with the time of its trace. Fields that the format lacks are undefined. */
export interface TraceRow {
  readonly timeMs: number;
  readonly account?: string | undefined;
  readonly model?: string | undefined;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly conversation?: string | undefined;
}

/** A mistake in a line. The message names the field. */
export class LineFault extends Error {}

type Fields = Readonly<Record<string, unknown>>;

/** No model takes a longer prompt. */
export const tokensMax = 10_000_000;

export function tokens(fields: Fields, name: string): number {
  const value = present(fields, name);
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  if (typeof number === "number" && Number.isSafeInteger(number) && number >= 0 && number <= tokensMax) return number;
  throw new LineFault(`"${name}" must be a whole number from 0 to ${tokensMax}, not ${shown(value)}`);
}

/** A number of seconds or milliseconds. */
export function duration(fields: Fields, name: string): number {
  const value = present(fields, name);
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  if (typeof number === "number" && Number.isFinite(number) && number >= 0) return number;
  throw new LineFault(`"${name}" must be a number from 0, not ${shown(value)}`);
}

const instantForm = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)?$/;

/** An instant such as `2026-11-20T10:00:00.123Z`, in ms since 1970. Without an offset it is UTC. */
export function instant(fields: Fields, name: string): number {
  const value = present(fields, name);
  const [, day, time, fraction = "", offset = "Z"] = (typeof value === "string" && instantForm.exec(value)) || [];
  const ms = Date.parse(`${day}T${time}${offset}`);
  if (Number.isNaN(ms))
    throw new LineFault(`"${name}" must be a time like 2026-11-20T10:00:00.123Z, not ${shown(value)}`);
  return ms + Number(`0${fraction}`) * 1_000;
}

export function word(fields: Fields, name: string): string {
  const value = present(fields, name);
  if (typeof value === "string" && value !== "") return value;
  throw new LineFault(`"${name}" must be a text that is not empty, not ${shown(value)}`);
}

export function optionalWord(fields: Fields, name: string): string | undefined {
  return fields[name] === undefined ? undefined : word(fields, name);
}

function present(fields: Fields, name: string): unknown {
  const value = fields[name];
  if (value !== undefined) return value;
  const near = nearest(name, Object.keys(fields));
  throw new LineFault(`"${name}" is missing${near === undefined ? "" : `; is "${near}" meant?`}`);
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}
