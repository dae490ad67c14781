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

export function optionalUint64(value: number | undefined): bigint | undefined {
  return value === undefined ? undefined : BigInt(Math.max(0, Math.round(value)));
}
