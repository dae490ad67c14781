/** What the portal's JSON API answers when it refuses: the error body of the public API, and each wrong parameter by name. */
import { ApiError, errorBody, errorHeaders } from "@weiche/shared/errors.ts";
import { Refused, TooManyAttempts } from "../rights/refused.ts";

export const portalErrors = {
  invalid: { status: 400, type: "invalid_request_error", code: "400" },
  login_required: { status: 401, type: "authentication_error", code: "login_required" },
  login_failed: { status: 401, type: "authentication_error", code: "login_failed" },
  totp_required: { status: 401, type: "authentication_error", code: "totp_required" },
  forbidden: { status: 403, type: "permission_error", code: "403" },
  wrong_origin: { status: 403, type: "permission_error", code: "wrong_origin" },
  not_found: { status: 404, type: "invalid_request_error", code: "404" },
  conflict: { status: 409, type: "invalid_request_error", code: "409" },
  price_changed: { status: 409, type: "invalid_request_error", code: "price_changed" },
  too_large: { status: 413, type: "invalid_request_error", code: "413" },
  unsupported_media_type: { status: 415, type: "invalid_request_error", code: "415" },
  too_many_attempts: { status: 429, type: "rate_limit_error", code: "too_many_attempts" },
  too_many_requests: { status: 503, type: "service_unavailable", code: "too_many_requests" },
} as const satisfies Record<string, { status: number; type: string; code: string }>;

export type PortalErrorKind = keyof typeof portalErrors;

/** One thing that is wrong: where (`body.member` without the `body`), and a word for what. */
export interface ErrorDetail {
  readonly param: string;
  readonly code: string;
}

/** A refusal of the portal. The message is for the person who asked and quotes nothing that was sent. */
export class PortalError extends Error {
  readonly kind: PortalErrorKind;
  readonly details: readonly ErrorDetail[];
  readonly retryAfterSeconds: number | undefined;

  constructor(
    kind: PortalErrorKind,
    message: string,
    more: { readonly details?: readonly ErrorDetail[]; readonly retryAfterSeconds?: number } = {},
  ) {
    super(message);
    this.kind = kind;
    this.details = more.details ?? [];
    this.retryAfterSeconds = more.retryAfterSeconds;
  }
}

/** Of what is counted in the database, such as guesses. */
export function tooMany(waitMs: number): PortalError {
  return new PortalError("too_many_attempts", "Too many attempts. Wait a while before the next one.", {
    retryAfterSeconds: waitMs / 1000,
  });
}

export interface PortalRefusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
}

/** undefined: no refusal but a bug. */
export function toRefusal(error: unknown): PortalRefusal | undefined {
  if (error instanceof ApiError) return { status: error.status, headers: errorHeaders(error), body: errorBody(error) };
  if (error instanceof TooManyAttempts) return toRefusal(tooMany(error.waitMs));
  const known = error instanceof Refused ? new PortalError(error.kind, sentence(error.message)) : fromFramework(error);
  if (!known) return undefined;
  const { status, type, code } = portalErrors[known.kind];
  const { message, details, retryAfterSeconds } = known;
  const param = details[0]?.param ?? null;
  return {
    status,
    headers:
      retryAfterSeconds === undefined ? {} : { "retry-after": String(Math.max(1, Math.ceil(retryAfterSeconds))) },
    body: { error: { message, type, param, code, ...(details.length > 0 ? { details } : {}) } },
  };
}

const detailsMax = 100;

interface ValidationError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
}

function fromFramework(error: unknown): PortalError | undefined {
  if (error instanceof PortalError) return error;
  const { validation, code, statusCode } = error as {
    readonly validation?: readonly ValidationError[];
    readonly code?: string;
    readonly statusCode?: number;
  };
  if (validation) return invalid(validation.slice(0, detailsMax).map(toDetail));
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") return new PortalError("too_large", "The body is too large.");
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return new PortalError("invalid", "The request is not well-formed.");
  return undefined;
}

/** A schema of several kinds fails in each of them: one word per parameter is enough, said where it is most precise. */
function invalid(all: readonly ErrorDetail[]): PortalError {
  const details = all.filter(
    ({ param }, index) =>
      !all.some((other) => other.param.startsWith(`${param}.`)) &&
      all.findIndex((other) => other.param === param) === index,
  );
  const names = details.map(({ param }) => param || "the body").join(", ");
  return new PortalError("invalid", `Not accepted: ${names}.`, { details });
}

const words: Readonly<Record<string, string>> = {
  required: "missing",
  additionalProperties: "unknown",
  type: "wrong_type",
  enum: "not_allowed",
  const: "not_allowed",
  pattern: "malformed",
  minLength: "too_short",
  maxLength: "too_long",
  minItems: "too_short",
  maxItems: "too_long",
  minimum: "too_small",
  maximum: "too_large",
  uniqueItems: "repeated",
  minProperties: "missing",
};

function toDetail({ keyword, instancePath, params }: ValidationError): ErrorDetail {
  const member = params["missingProperty"] ?? params["additionalProperty"];
  const path = instancePath.split("/").slice(1);
  // A name that the client made up is cut: an answer repeats no long text of a request.
  if (typeof member === "string") path.push(member.slice(0, 40));
  return { param: path.join("."), code: words[keyword] ?? "malformed" };
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
