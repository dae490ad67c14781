/** Reads an amount of credits as people type it, such as 2.000.000, 2,000,000, 2 000 000, 2M or 2,5 Mio. Pure. */
import type { Language } from "./format.ts";

export type TypedCredits =
  | { readonly kind: "none" }
  /** `value`: as the API takes it, such as 2000000 or 0.5. */
  | { readonly kind: "credits"; readonly value: string }
  /** The text could mean either amount. */
  | { readonly kind: "ambiguous"; readonly small: string; readonly large: string }
  | { readonly kind: "unreadable" };

/** The API's largest limit, in thousandths. */
export const creditsMax = 999_999_999;
const thousandthsMax = BigInt(creditsMax) * 1_000n + 999n;

const units: Readonly<Record<string, number>> = { "": 0, k: 3, tsd: 3, m: 6, mio: 6, million: 6, millionen: 6 };
const thousandsSeparator = { de: ".", en: "," } as const;
const unreadable = { kind: "unreadable" } as const;

/**
 * Other languages' separators are understood where they can mean one thing only: 2,5 is two and a half everywhere, and
 * 2.000.000 is two million. In English, 2.000 could be two or two thousand.
 */
export function readCredits(text: string, language: Language): TypedCredits {
  const trimmed = text.replace(/credits?$/i, "").trim();
  if (trimmed === "") return { kind: "none" };
  const [, number, unit] = /^([\d.,'’\s]*\d)\s*(?:(\p{L}+)\.?)?$/u.exec(trimmed) ?? [];
  const power = units[(unit ?? "").toLowerCase()];
  if (number === undefined || power === undefined) return unreadable;
  const single = /^([1-9]\d{0,2})([.,])(\d{3})$/.exec(number);
  if (!single) return creditsOf(partsOf(number), power);
  const large = creditsOf([`${single[1]}${single[3]}`, ""], power);
  if (single[2] === thousandsSeparator[language]) return large;
  const small = creditsOf([single[1]!, single[3]!], power);
  if (small.kind !== "credits" || large.kind !== "credits") return small;
  return { kind: "ambiguous", small: small.value, large: large.value };
}

type Parts = readonly [whole: string, fraction: string];

/** Returns the digits before and after the decimal separator. Undefined if the separators make no number. */
function partsOf(number: string): Parts | undefined {
  const groups = /^([1-9]\d{0,2}(?:([.,'’\s])\d{3})(?:\2\d{3})*)(?:([.,])(\d+))?$/u.exec(number);
  if (groups && groups[2] !== groups[3]) return [groups[1]!.replaceAll(/\D/g, ""), groups[4] ?? ""];
  const plain = /^(\d+)(?:[.,](\d+))?$/.exec(number);
  return plain ? [plain[1]!, plain[2] ?? ""] : undefined;
}

function creditsOf(parts: Parts | undefined, power: number): TypedCredits {
  if (!parts) return unreadable;
  const [whole, fraction] = parts;
  const decimals = power + 3;
  if (/[1-9]/.test(fraction.slice(decimals))) return unreadable;
  const thousandths = BigInt(whole + fraction.slice(0, decimals).padEnd(decimals, "0"));
  if (thousandths > thousandthsMax) return unreadable;
  const rest = thousandths % 1_000n;
  const decimal = rest === 0n ? "" : `.${String(rest).padStart(3, "0").replace(/0+$/, "")}`;
  return { kind: "credits", value: `${thousandths / 1_000n}${decimal}` };
}
