/**
 * Thrown when an answer reaches one of our limits. The answer then ends as it would at the end of its context window,
 * complete and billed.
 */
export class AnswerFull extends Error {}
