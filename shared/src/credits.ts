/**
 * Credits are exact integers: thousandths of a credit, as bigint. One credit is one token at factor 1, so a factor in
 * thousandths is also the price of one token in millicredits.
 */
declare const unit: unique symbol;
export type Millicredits = bigint & { readonly [unit]: "millicredits" };

export function millicredits(value: bigint): Millicredits {
  return value as Millicredits;
}

/** Returns the price of a request: (input + output tokens) × factor. */
export function creditsOf(promptTokens: number, completionTokens: number, factor: Millicredits): Millicredits {
  return millicredits(BigInt(promptTokens + completionTokens) * factor);
}

/**
 * Reads a credit factor such as `1.5` or `"0.25"` exactly. Undefined if it is not a number of at most three decimals.
 */
export function parseFactor(text: string | number): Millicredits | undefined {
  const match = /^(\d{1,9})(?:\.(\d{1,3}))?$/.exec(String(text));
  if (!match) return undefined;
  return millicredits(BigInt(match[1]!) * 1000n + BigInt((match[2] ?? "").padEnd(3, "0")));
}

/** Returns a decimal string with three decimals, such as `61.500`. */
export function formatCredits(value: Millicredits): string {
  const [, sign, amount] = /^(-?)(\d+)$/.exec(value.toString())!;
  const digits = amount!.padStart(4, "0");
  return `${sign}${digits.slice(0, -3)}.${digits.slice(-3)}`;
}
