/** Answers to errors on listeners for browsers: the public API's error body, with every wrong parameter. */
import { ApiError, errorBody, errorHeaders } from "@weiche/shared/errors.ts";
import type { RequestId } from "@weiche/shared/ids.ts";
import { isUnavailable } from "../../db/failures.ts";
import type { RequestError } from "../../rights/request-error.ts";
import type { ErrorAnswer } from "./add-routes.ts";
import { asRequestError, errorAnswers } from "./error-answers.ts";

export interface WebEvents {
  /** A bug, answered with 500 or a cut connection. */
  requestFailed(requestId: RequestId, error: unknown): void;
  /** An address opened too many connections. */
  connectionRefused(): void;
  /** A trusted proxy sent an entry in `X-Forwarded-For` that is not an address. */
  forwardedUnread(proxy: string, entry: string): void;
  /** The database did not answer, so the client got 503. */
  databaseUnavailable(error: unknown): void;
}

export function answerToBrowser(error: unknown, requestId: RequestId, events: WebEvents): ErrorAnswer {
  const refused = asRequestError(error);
  if (refused) return answerToRequestError(refused);
  if (error instanceof ApiError) return answerToApiError(error);
  if (isUnavailable(error)) {
    events.databaseUnavailable(error);
    const options = { retryAfterSeconds: 2 };
    return answerToApiError(new ApiError("overloaded", "The database does not answer at the moment.", options));
  }
  events.requestFailed(requestId, error);
  return answerToApiError(new ApiError("internal", "Internal error."));
}

function answerToApiError(error: ApiError): ErrorAnswer {
  return { status: error.status, headers: errorHeaders(error), body: errorBody(error) };
}

function answerToRequestError({ kind, message: phrase, details, retryAfterSeconds }: RequestError): ErrorAnswer {
  const { status, type, code } = errorAnswers[kind];
  const message = `${phrase.charAt(0).toUpperCase()}${phrase.slice(1)}.`;
  const param = details[0]?.param ?? null;
  return {
    status,
    headers:
      retryAfterSeconds === undefined ? {} : { "retry-after": String(Math.max(1, Math.ceil(retryAfterSeconds))) },
    body: { error: { message, type, param, code, details: details.length > 0 ? details : undefined } },
  };
}
