/**
 * Gives the memory of a peak back. V8 collects what has died when something else needs the room, and a process that has
 * become quiet needs none: a minute after 10,000 streams had ended, a router had still given back nothing.
 */
import { every, type Clock } from "../time/clock.ts";

const lookMs = 5_000;
/** The memory of fewer is not worth a collection. */
const peakMin = 500;
const quietShare = 0.25;
/** What a socket held is freed by the collection after the one that finds it dead. */
const collections = 3;

/** `open`: how many streams there are now. Collects after each peak, once two looks in a row have found few left. */
export function returnMemory(clock: Clock, open: () => number, collect: () => void = collectSoon): Disposable {
  let peak = 0;
  let wasQuiet = false;
  let wanted = 0;
  const looking = every(clock, lookMs, () => {
    const now = open();
    peak = Math.max(peak, now);
    const isQuiet = peak >= peakMin && now <= peak * quietShare;
    if (isQuiet && wasQuiet) {
      peak = now;
      wanted = collections;
    }
    wasQuiet = isQuiet;
    if (wanted === 0) return;
    wanted--;
    collect();
  });
  return { [Symbol.dispose]: () => looking.cancel() };
}

/** V8's soft limit of memory outside its heap is 64 MB more than at its last full collection. */
const aboveSoftLimit = 65 << 20;

/**
 * Makes V8 begin a full collection beside the program's work (300 MB came back within 30 s, the longest pause was 22 ms;
 * `--expose-gc` would stop everything for it). Nothing writes to what is asked for, so no memory is taken.
 */
export function collectSoon(): void {
  new ArrayBuffer(aboveSoftLimit);
}
