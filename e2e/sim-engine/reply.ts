/** Sends refusals, and answers that are wrong as a whole. */
import type { ServerResponse } from "node:http";
import type { Refusal, RefusalKind, SimDialect } from "./answer.ts";
import type { Fault, FaultKind } from "./faults.ts";
import type { EngineParts } from "./parts.ts";
import { reply, type Sink } from "./sink.ts";

export function refuse(response: ServerResponse, { status, body }: Refusal): void {
  reply(response, status, body);
}

/** Refuses with an event of a stream that began normally, and ends it. */
export function refuseInStream(sink: Sink, dialect: SimDialect, refusal: Refusal): void {
  sink.open();
  sink.event(dialect.eventOf(refusal));
  if (dialect.terminatesErrors) sink.terminator();
  sink.end();
}

const refusals: Partial<Record<FaultKind, RefusalKind>> = {
  "500": "internal",
  "503": "unavailable",
  "429": "overloaded",
};

/** Answers with a fault of the whole answer before generating. Returns false for other faults. */
export function replyWrong(
  { kind }: Fault,
  { dialect, facts: { contextTokens } }: EngineParts,
  stream: boolean,
  response: ServerResponse,
): boolean {
  const refusal = refusals[kind];
  if (refusal) refuse(response, dialect.refusals[refusal]);
  else if (kind === "overflow") refuse(response, dialect.overflow(contextTokens + 1, contextTokens));
  else if (kind === "html") reply(response, 200, "<html><body><h1>It works!</h1></body></html>", "text/html");
  else if (kind === "empty") reply(response, 200, "", stream ? "text/event-stream" : "application/json");
  else if (kind === "wrong-length") {
    response.writeHead(200, { "content-type": "text/event-stream", "content-length": "100000" });
    response.write(": ping\n\n", () => response.socket?.destroySoon());
  } else return false;
  return true;
}
