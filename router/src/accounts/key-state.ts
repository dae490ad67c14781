/** The states of a key, from usable to revoked. */
export const keyStates = ["active", "blocked-by-limit", "user-blocked", "expired", "revoked"] as const;

export type KeyState = (typeof keyStates)[number];
