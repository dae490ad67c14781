/** Writes counts and sizes for people. */

/** Returns `1 request` or `2 requests`. `many`: the plural, if it is not `one` with an s. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** Returns `1.5 GiB`, or MiB and KiB for less than a tenth of a GiB or MiB, so that little is not shown as nothing. */
export function gibibytes(bytes: number): string {
  if (bytes >= 2 ** 30 / 10 || bytes <= 0) return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
  return bytes >= 2 ** 20 / 10 ? `${(bytes / 2 ** 20).toFixed(1)} MiB` : `${Math.ceil(bytes / 2 ** 10)} KiB`;
}

/** Like `gibibytes`, if the size is known. */
export function gibibytesOf(bytes: number | undefined): string | undefined {
  return bytes === undefined ? undefined : gibibytes(bytes);
}

/** Like `gibibytes`, with MB and KB of 10⁶ and 10³ bytes. */
export function megabytes(bytes: number): string {
  return bytes >= 1e5 || bytes <= 0 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.ceil(bytes / 1e3)} KB`;
}
