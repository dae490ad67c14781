/** Answers that are one body, right and wrong. */
import type { ServerResponse } from "node:http";
import type { Refusal, RefusalKind, SimDialect } from "./answer.ts";
import type { Fault, FaultKind } from "./faults.ts";
import type { EngineParts } from "./parts.ts";
import { Sink } from "./sink.ts";

export function reply(response: ServerResponse, status: number, body: unknown, type = "application/json"): void {
  if (response.headersSent) return;
  const text = typeof body === "string" ? body : JSON.stringify(body);
  response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(text) }).end(text);
}

export function refuse(
  response: ServerResponse,
  dialect: SimDialect,
  ...what: Parameters<SimDialect["refusal"]>
): void {
  const { status, body } = dialect.refusal(...what);
  reply(response, status, body);
}

/** With the first event of a stream that began well. */
export function refuseLate(response: ServerResponse, dialect: SimDialect, refusal: Refusal): void {
  const sink = new Sink(response);
  sink.open();
  sink.event(dialect.eventOf(refusal));
  if (dialect.terminatesErrors) sink.terminator();
  sink.end();
}

const refusals: Partial<Record<FaultKind, RefusalKind>> = {
  "500": "internal",
  "503": "unavailable",
  "429": "overloaded",
  overflow: "overflow",
};

/** Faults of the answer as a whole, before anything is generated. True if it was one. */
export function replyWrong(
  { kind }: Fault,
  { dialect, facts }: EngineParts,
  stream: boolean,
  response: ServerResponse,
): boolean {
  const refusal = refusals[kind];
  const { contextTokens } = facts;
  if (refusal) refuse(response, dialect, refusal, { promptTokens: contextTokens + 1, contextTokens });
  else if (kind === "html") reply(response, 200, "<html><body><h1>It works!</h1></body></html>", "text/html");
  else if (kind === "empty") reply(response, 200, "", stream ? "text/event-stream" : "application/json");
  else if (kind === "wrong-length") {
    response.writeHead(200, { "content-type": "text/event-stream", "content-length": "100000" });
    response.write(": ping\n\n", () => response.socket?.destroySoon());
  } else return false;
  return true;
}
