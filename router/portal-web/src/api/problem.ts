/** A refusal or a failure of an API. */

interface FieldProblem {
  readonly param: string;
  readonly code: string;
}

/** `status` is 0 if no answer came. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly details: readonly FieldProblem[];
  readonly requestId: string | null;
  readonly retryAfterSeconds: number | null;

  constructor(status: number, error: Partial<ErrorBody>, headers = new Headers()) {
    super(error.message ?? "");
    this.status = status;
    this.code = error.code ?? String(status);
    this.details = error.details ?? [];
    this.requestId = headers.get("x-request-id");
    this.retryAfterSeconds = headers.has("retry-after") ? Number(headers.get("retry-after")) : null;
  }
}

export interface ErrorBody {
  readonly message: string;
  readonly code: string;
  readonly details?: readonly FieldProblem[];
}
