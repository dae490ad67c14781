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
  /** The parameter that the public API refused. */
  readonly param: string | null;
  readonly requestId: string | null;
  readonly retryAfterSeconds: number | null;

  constructor(status: number, error: Partial<ErrorBody>, headers = new Headers()) {
    super(error.message ?? "");
    this.status = status;
    this.code = error.code ?? String(status);
    this.details = error.details ?? [];
    this.param = error.param ?? null;
    this.requestId = headers.get("x-request-id");
    this.retryAfterSeconds = headers.has("retry-after") ? Number(headers.get("retry-after")) : null;
  }

  /** An error's message is left out otherwise. */
  toJSON(): object {
    const { status, code, details, param, requestId, retryAfterSeconds, message } = this;
    return { status, code, details, param, requestId, retryAfterSeconds, message };
  }
}

export interface ErrorBody {
  readonly message: string;
  readonly code: string;
  readonly details?: readonly FieldProblem[];
  readonly param?: string | null;
}
