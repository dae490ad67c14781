/**
 * Loaded before a program (`node --import shifted-clock.ts?file=PATH`), it shifts the program's wall clock by the
 * milliseconds that the file holds, as they change; the monotonic clock and the timers stay. A missing file shifts nothing.
 */
import { readFileSync } from "node:fs";

const lookMs = 20;
const file = new URL(import.meta.url).searchParams.get("file")!;
const RealDate = Date;
let shiftMs = 0;

const now = () => RealDate.now() + shiftMs;
globalThis.Date = new Proxy(RealDate, {
  construct: (_, args: [], made) =>
    Reflect.construct(RealDate, args.length === 0 ? [now()] : args, made === Date ? RealDate : made) as Date,
  apply: () => new RealDate(now()).toString(),
  get: (_, name) => (name === "now" ? now : (Reflect.get(RealDate, name) as unknown)),
});

look();
setInterval(look, lookMs).unref();

function look(): void {
  try {
    shiftMs = Number(readFileSync(file, "utf8"));
  } catch {
    shiftMs = 0;
  }
}
