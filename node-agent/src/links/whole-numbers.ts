/**
 * Converts times to the protocol's whole numbers. Times may have fractions, and may be negative after the clock was
 * set.
 */

export function uint32(value: number): number {
  return Math.min(0xffff_ffff, Math.max(0, Math.round(value)));
}

export function optionalUint32(value: number | undefined): number | undefined {
  return value === undefined ? undefined : uint32(value);
}

/** Rounds the times of a message: members whose names end in `Ms`, also in its parts. */
export function wholeTimes<Message>(message: Message): Message {
  const convert = (value: unknown, name = ""): unknown => {
    if (typeof value === "number") return name.endsWith("Ms") ? uint32(value) : value;
    if (Array.isArray(value)) return value.map((each) => convert(each));
    if (typeof value !== "object" || value === null || value instanceof Map) return value;
    // A loop, because nodes make reports all the time, and lists of entries take twice as long.
    const whole: Record<string, unknown> = {};
    for (const key of Object.keys(value)) whole[key] = convert((value as Record<string, unknown>)[key], key);
    return whole;
  };
  return convert(message) as Message;
}

export function optionalUint64(value: number | undefined): bigint | undefined {
  return value === undefined ? undefined : BigInt(Math.max(0, Math.round(value)));
}
