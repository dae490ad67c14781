/** Reads and writes durations for people. */

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** Returns the milliseconds of `30s`, `10m` or `1h`, or undefined if the text is not a duration or is 0. */
export function readDurationMs(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,6})(ms|s|m|h)$/.exec(text) ?? [];
  return unit === undefined || Number(count) === 0 ? undefined : Number(count) * unitMs[unit as keyof typeof unitMs];
}

/** Formats a duration, with less precision the longer it is: `4.2 s`, `12 min`, `2 h 5 min`. */
export function inWords(seconds: number): string {
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds < 600 ? `${minutes} min ${Math.floor(seconds % 60)} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
