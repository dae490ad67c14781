/**
 * Preloaded (see `preloaded-file.ts`). Shifts the program's wall clock by the milliseconds in its file, and follows
 * changes of the file. The monotonic clock and timers are unchanged. A missing file shifts nothing.
 */
import { readFileSync } from "node:fs";
import { fileOfProgram } from "../cluster/preloaded-file.ts";

const lookMs = 20;
const file = fileOfProgram(import.meta.url);
const RealDate = Date;
let shiftMs = 0;

const now = () => RealDate.now() + shiftMs;
globalThis.Date = new Proxy(RealDate, {
  construct: (_, args: [], made) =>
    Reflect.construct(RealDate, args.length === 0 ? [now()] : args, made === Date ? RealDate : made) as Date,
  apply: () => new RealDate(now()).toString(),
  get: (_, name) => (name === "now" ? now : (Reflect.get(RealDate, name) as unknown)),
});

if (file !== undefined) {
  look(file);
  setInterval(look, lookMs, file).unref();
}

function look(path: string): void {
  try {
    shiftMs = Number(readFileSync(path, "utf8"));
  } catch {
    shiftMs = 0;
  }
}
