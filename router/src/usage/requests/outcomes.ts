/** How requests end, as lists of requests name it. */

/**
 * In the database. `broken`: the service failed, so the request cost nothing. `timeout`: a limit ended the answer. A
 * client that did not read its answer is `client-gone`.
 */
export const listedOutcomes = ["answered", "refused", "client-gone", "timeout", "broken"] as const;
export type ListedOutcome = (typeof listedOutcomes)[number];

/** In a router's memory. */
export const endedOutcomes = [...listedOutcomes, "stalled"] as const;
export type EndedOutcome = (typeof endedOutcomes)[number];
