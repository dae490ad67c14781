/** The states of a key, from usable to revoked. Without imports, since the portal's contract reads it. */
export const keyStates = ["active", "blocked-by-limit", "user-blocked", "expired", "revoked"] as const;

export type KeyState = (typeof keyStates)[number];
