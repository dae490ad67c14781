/** Begins a long answer. The tiny model was not trained on such a prompt and continues until its window is full. */
import type { Answer } from "../../cluster/api-client.ts";
import type { AskOptions, Service } from "../service.ts";

const endless = "the cat ".repeat(500);

interface Running {
  readonly answer: Promise<Answer>;
  /** Resolves with the tenth piece. Rejects if the answer ends before. */
  readonly begun: Promise<void>;
  readonly leave: () => void;
}

/** Begins a stream of some thousand tokens. */
export function longAnswer(service: Service, more: object = {}, options: Omit<AskOptions, "signal"> = {}): Running {
  const begun = Promise.withResolvers<void>();
  const leaving = new AbortController();
  const onPiece = (pieces: number) => {
    if (pieces === 10) begun.resolve();
    options.onPiece?.(pieces);
  };
  const answer = service.stream(endless, more, { ...options, onPiece, signal: leaving.signal });
  answer.then(
    ({ status, ending, error, pieces }) =>
      begun.reject(new Error(`the long answer has ended: ${JSON.stringify({ status, ending, pieces, error })}`)),
    begun.reject,
  );
  begun.promise.catch(() => {});
  return { answer, begun: begun.promise, leave: () => leaving.abort() };
}
