/** Writes refusals: error bodies and HTML pages. */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { ApiError, apiErrors, asApiError, errorBody, errorHeaders, type ErrorBody } from "@weiche/shared/errors.ts";
import { ClientGone, type Exchange } from "./exchange.ts";
import { NodeRefusal } from "./node-refusal.ts";
import { refusalCodes, type RefusalCode, type RefusalWord } from "../usage/refusal-codes.ts";
import { htmlPage, PageRefusal } from "../edge/html-pages.ts";

/**
 * Writes the refusal and settles the exchange. Bytes that the client still sends are discarded for at most `discardMs`
 * before its connection closes, so that the client can read the refusal.
 */
export function refuse(exchange: Exchange, error: unknown, clock: Clock, discardMs: number): void {
  const { sink } = exchange;
  if (error instanceof ClientGone || exchange.settled) return exchange.settle();
  if (sink.hasBegun) {
    exchange.outcome = "broken";
    sink.cut("at-once");
    return exchange.settle();
  }
  const { status, headers, body, code } = toRefusal(error);
  exchange.outcome = "refused";
  exchange.status = status;
  exchange.errorCode = code;
  exchange.refusal = refusalWordOf(error);
  exchange.bytesSent = body.length;
  sink.head(status, { ...headers, "content-length": exchange.bytesSent, "x-request-id": exchange.id });
  if (exchange.bodyPending) {
    sink.piece(body);
    discardBody(exchange, clock, discardMs);
  } else sink.end(body);
  exchange.settle();
}

/** Keeps the connection until the client's body has arrived or `discardMs` are over. */
function discardBody({ request, sink }: Exchange, clock: Clock, discardMs: number): void {
  const timer = clock.after(discardMs, () => {
    sink.end();
    sink.cut("written");
  });
  request.once("close", () => {
    timer.cancel();
    sink.end();
  });
  request.resume();
}

/** Returns the word under which a refusal is counted, with or without a known key. */
function refusalWordOf(error: unknown): RefusalWord {
  if (error instanceof PageRefusal && error.kind !== "body_too_large") return error.kind;
  if (error instanceof ApiError && error.kind === "invalid_api_key" && !error.reason) return error.kind;
  return refusalCodeOf(error) ?? "internal";
}

/** Returns the code under which a refusal is counted for its key; undefined if it is not counted. */
export function refusalCodeOf(error: unknown): RefusalCode | undefined {
  if (error instanceof ClientGone) return undefined;
  if (error instanceof PageRefusal) return error.kind === "body_too_large" ? "too_large" : undefined;
  if (error instanceof ApiError) return knownCode(error.reason ?? error.kind);
  if (!(error instanceof NodeRefusal)) return "internal";
  return error.status === 400 ? codeOfInvalid(error.body.error) : knownCode(error.body.error.code);
}

/** Returns the code of a node's 400: the node checks what depends on its engine. */
function codeOfInvalid({ type, param }: ErrorBody["error"]): RefusalCode {
  if (type === apiErrors.context_window_exceeded.type) return "context_window_exceeded";
  if (param === "n") return "too_many_answers";
  return /^(tools|response_format)\b/.test(param ?? "") ? "schema_refused" : "invalid_request";
}

function knownCode(word: string): RefusalCode {
  return Object.hasOwn(refusalCodes, word) ? (word as RefusalCode) : "internal";
}

const codes: ReadonlySet<string> = new Set(Object.values(apiErrors).map(({ code }) => code));

interface Refusal {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: Buffer;
  /** Label for logs and metrics: a code of the API, or `other`. */
  readonly code?: string;
}

function toRefusal(error: unknown): Refusal {
  if (error instanceof PageRefusal) {
    const headers: Record<string, string> = { "content-type": "text/html; charset=utf-8" };
    if (error.retryAfterSeconds !== undefined) headers["retry-after"] = String(error.retryAfterSeconds);
    return { status: error.status, headers, body: Buffer.from(htmlPage(error.status)) };
  }
  if (error instanceof NodeRefusal) return json(error.status, error.body, error.headers);
  const known = asApiError(error);
  const headers = errorHeaders(known);
  if (known.status === 401) headers["www-authenticate"] = "Bearer";
  return json(known.status, errorBody(known), headers);
}

function json(status: number, body: ErrorBody, headers: Record<string, string>): Refusal {
  return {
    status,
    headers: { "content-type": "application/json; charset=utf-8", ...headers },
    body: Buffer.from(JSON.stringify(body)),
    code: codes.has(body.error.code) ? body.error.code : "other",
  };
}

/** Returns whether an error is an operating error. All other errors are bugs. */
export function isExpected(error: unknown): boolean {
  return [ApiError, PageRefusal, NodeRefusal, ClientGone].some((kind) => error instanceof kind);
}
