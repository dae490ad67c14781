/** The HTTP status, type and code of each kind of `RequestError`. */
import { nearest } from "@weiche/shared/files/config-file.ts";
import { RequestError, type FieldError, type RequestErrorKind } from "../../rights/request-error.ts";

export const errorAnswers = {
  invalid: { status: 400, type: "invalid_request_error", code: "400" },
  login_required: { status: 401, type: "authentication_error", code: "login_required" },
  login_failed: { status: 401, type: "authentication_error", code: "login_failed" },
  totp_required: { status: 401, type: "authentication_error", code: "totp_required" },
  account_blocked: { status: 403, type: "permission_error", code: "account_blocked" },
  forbidden: { status: 403, type: "permission_error", code: "403" },
  wrong_origin: { status: 403, type: "permission_error", code: "wrong_origin" },
  not_found: { status: 404, type: "invalid_request_error", code: "404" },
  conflict: { status: 409, type: "invalid_request_error", code: "409" },
  price_changed: { status: 409, type: "invalid_request_error", code: "price_changed" },
  too_large: { status: 413, type: "invalid_request_error", code: "413" },
  unsupported_media_type: { status: 415, type: "invalid_request_error", code: "415" },
  too_many_attempts: { status: 429, type: "rate_limit_error", code: "too_many_attempts" },
  too_many_requests: { status: 503, type: "service_unavailable", code: "too_many_requests" },
} as const satisfies Record<RequestErrorKind, { status: number; type: string; code: string }>;

/** Returns the refusal of a parameter that matches its schema but is invalid, such as 30 February. */
export function malformed(param: string, message = `${param} is not well-formed`): RequestError {
  return new RequestError("invalid", message, { details: [{ param, code: "malformed" }] });
}

/** Returns the message about an unknown name, with the nearest known one. Cuts long names. */
export function noSuch(what: string, name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  return `there is no ${what} "${name.slice(0, 64)}"${near === undefined ? "" : `; did you mean "${near}"?`}`;
}

/** Returns a `RequestError`, also for Fastify's errors (schema, body). Undefined for a bug or an `ApiError`. */
export function asRequestError(error: unknown): RequestError | undefined {
  if (error instanceof RequestError) return error;
  const { validation, code, statusCode } = error as {
    readonly validation?: readonly ValidationError[];
    readonly code?: string;
    readonly statusCode?: number;
  };
  if (validation) return invalid(validation.slice(0, detailsMax).map(toDetail));
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") return new RequestError("too_large", "the body is too large");
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return new RequestError("invalid", "the request is not well-formed");
  return undefined;
}

const detailsMax = 100;

interface ValidationError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** Keeps one error per parameter, the most precise one: unions report errors for each of their members. */
function invalid(all: readonly FieldError[]): RequestError {
  const details = all.filter(
    ({ param }, index) =>
      !all.some((other) => other.param.startsWith(`${param}.`)) &&
      all.findIndex((other) => other.param === param) === index,
  );
  const phrase = ({ param, code }: FieldError) =>
    `${param || "the body"} is ${code === "missing" || code === "unknown" ? code : "not well-formed"}`;
  return new RequestError("invalid", details.map(phrase).join(", "), { details });
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

function toDetail({ keyword, instancePath, params }: ValidationError): FieldError {
  const member = params["missingProperty"] ?? params["additionalProperty"];
  const path = instancePath.split("/").slice(1);
  // Cut, because the client chose the name, and answers must not repeat long texts.
  if (typeof member === "string") path.push(member.slice(0, 40));
  return { param: path.join("."), code: words[keyword] ?? "malformed" };
}
