/** Sets of characters, like the character classes of regular expressions. */

/** A set of characters: one bit for each ASCII character, and one for all others. */
export type CharSet = bigint;
export const others = 128;
export const every: CharSet = (1n << 129n) - 1n;
export const range = (from: number, to: number): CharSet =>
  to < from ? 0n : ((1n << BigInt(Math.min(to, others) - from + 1)) - 1n) << BigInt(Math.min(from, others));
export const one = (char: number): CharSet => range(Math.min(char, others), Math.min(char, others));
const digits = range(0x30, 0x39);
const word = digits | range(0x41, 0x5a) | range(0x61, 0x7a) | one(0x5f);
const space = range(9, 13) | one(0x20) | one(others);
export const named: Readonly<Record<string, CharSet>> = {
  ...{ d: digits, D: every ^ digits, w: word, W: every ^ word, s: space, S: every ^ space },
  ...{ t: one(9), n: one(10), v: one(11), f: one(12), r: one(13) },
};
