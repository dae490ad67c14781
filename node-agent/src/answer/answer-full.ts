/** Thrown where an answer reaches a bound of ours. It then ends as at the end of its window, whole and billed. */
export class AnswerFull extends Error {}
