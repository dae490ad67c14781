/** By what usage can be broken down. */
export const usageParts = ["day", "model", "key", "user"] as const;
export type UsagePart = (typeof usageParts)[number];
