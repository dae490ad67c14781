/**
 * Returns memory to the system after a peak. V8 collects garbage only when new allocations need room, and a quiet
 * process makes few: a minute after 10,000 streams had ended, a router had returned nothing.
 */
import { every, type Clock } from "../time/clock.ts";

const lookMs = 5_000;
/** After a peak of fewer streams, no collection runs. */
const peakMin = 500;
const quietShare = 0.25;
/** Several collections, because one frees a socket, and only the next one frees the socket's buffers. */
const collections = 3;

/** Collects after each peak, once two checks in a row have found few open streams. `open`: number of open streams. */
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

/** V8's soft limit for memory outside its heap is 64 MB above the amount at its last full collection. */
const aboveSoftLimit = 65 << 20;

/**
 * Makes V8 start a concurrent full collection. It returned 300 MB within 30 s, with pauses of at most 22 ms. The buffer
 * is never written, so it takes no memory.
 */
export function collectSoon(): void {
  new ArrayBuffer(aboveSoftLimit);
}
