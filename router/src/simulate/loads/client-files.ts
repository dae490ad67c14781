/**
 * Reads ServeGen's client files. A folder has two files for each client of a model: `chunk-N-trace.csv` with the client's
 * rate and the pattern of its gaps every ten minutes, and `chunk-N-dataset.json` with its distributions of lengths.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import type { Mistake } from "@weiche/shared/files/config-file.ts";
import { openLines } from "./lines.ts";
import { quantilesOf, type Quantiles } from "./quantiles.ts";

interface ClientModel {
  readonly model: string;
  readonly clients: readonly Client[];
}

export interface Client {
  readonly account: string;
  readonly windows: readonly Window[];
  readonly lengths: readonly Lengths[];
}

/** The requests of a client from `fromMs` to the next window. */
export interface Window {
  readonly fromMs: number;
  readonly perSecond: number;
  readonly pattern: { readonly name: "Gamma" | "Weibull"; readonly shape: number } | undefined;
}

/** The lengths of a client's requests from `fromMs` on. */
interface Lengths {
  readonly fromMs: number;
  readonly input: Quantiles;
  readonly output: Quantiles;
}

type Read = { readonly models: readonly ClientModel[]; readonly mistakes: readonly Mistake[] };

const tracePattern = /^chunk-(\d+)-trace\.csv$/;
const mistakesMax = 10;

/** Reads a folder with the files of one model, or a folder with such a folder for each model, which names the model. */
export function readClients(folder: string, model?: string): Read {
  const mistakes: Mistake[] = [];
  const hasClients = (path: string) => readdirSync(path).some((name) => tracePattern.test(name));
  const folders = hasClients(folder)
    ? [folder]
    : readdirSync(folder)
        .toSorted()
        .map((name) => join(folder, name))
        .filter((path) => statSync(path).isDirectory() && hasClients(path));
  if (folders.length === 0)
    return { models: [], mistakes: [{ line: 0, message: "the folder has no client files such as chunk-0-trace.csv" }] };
  const models = folders.map((path) => ({
    model: path === folder && model !== undefined ? model : basename(path),
    clients: clientsOf(path, mistakes),
  }));
  return { models, mistakes: mistakes.slice(0, mistakesMax) };
}

function clientsOf(folder: string, mistakes: Mistake[]): readonly Client[] {
  const numbers = readdirSync(folder).flatMap((name) => tracePattern.exec(name)?.[1] ?? []);
  return numbers
    .toSorted((a, b) => Number(a) - Number(b))
    .map((number) => {
      const account = `${basename(folder)}-${number}`;
      const windows = windowsOf(join(folder, `chunk-${number}-trace.csv`), mistakes);
      const lengths = lengthsOf(join(folder, `chunk-${number}-dataset.json`), mistakes);
      if (lengths.length === 0 && windows.some(({ perSecond }) => perSecond > 0))
        mistakes.push({ line: 0, message: `chunk-${number}-dataset.json has no distribution of lengths` });
      return { account, windows, lengths };
    });
}

function windowsOf(file: string, mistakes: Mistake[]): readonly Window[] {
  let line = 0;
  const windows: Window[] = [];
  for (const text of openLines(file)()) {
    line++;
    if (text === "") continue;
    const window = windowOf(text.split(","), windows.at(-1));
    if (typeof window !== "string") windows.push(window);
    else mistakes.push({ line: 0, message: `${basename(file)}:${line}: ${window}` });
  }
  return windows;
}

/** Returns a sentence about a mistake. A window without a pattern has no requests. */
function windowOf(cells: readonly string[], before: Window | undefined): Window | string {
  const [time, rate, , name = "", first] = cells;
  if (cells.length !== 6)
    return `the line has ${cells.length} fields instead of time, rate, cv, pattern and two parameters`;
  const [fromMs, perSecond, shape] = [1_000 * Number(time), Number(rate), Number(first)];
  if (!(fromMs >= 0)) return `"time" must be a number of seconds from 0, not "${time}"`;
  if (before && fromMs <= before.fromMs) return "the time goes back: sort the lines by time";
  if (!(perSecond >= 0)) return `"rate" must be a number from 0, not "${rate}"`;
  if (name === "") return { fromMs, perSecond: 0, pattern: undefined };
  if (name !== "Gamma" && name !== "Weibull") return `"pattern" must be Gamma or Weibull, not "${name}"`;
  if (!(shape > 0)) return `the shape of "pattern" must be a number above 0, not "${first}"`;
  return { fromMs, perSecond, pattern: { name, shape } };
}

/** Parts without a distribution are left out, so that the one before goes on. */
function lengthsOf(file: string, mistakes: Mistake[]): readonly Lengths[] {
  const wrong = (message: string): readonly [] => {
    mistakes.push({ line: 0, message: `${basename(file)}: ${message}` });
    return [];
  };
  let parts: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  try {
    parts = JSON.parse(readFileSync(file, "utf8")) as typeof parts;
  } catch (error) {
    return wrong((error as NodeJS.ErrnoException).code === "ENOENT" ? "the file is missing" : "the file is not JSON");
  }
  return Object.entries(parts).flatMap(([seconds, { input_tokens: inputs, output_tokens: outputs }]) => {
    if (typeof inputs !== "string" || typeof outputs !== "string")
      return wrong(`"${seconds}" needs distributions of "input_tokens" and "output_tokens"`);
    const [input, output] = [quantilesOf(inputs), quantilesOf(outputs)];
    return input && output ? [{ fromMs: 1_000 * Number(seconds), input, output }] : [];
  });
}
