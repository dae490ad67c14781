/** Writes an HTTP response to a socket without a response object, for example after a malformed request. */
import type { Duplex } from "node:stream";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { uuidv7 } from "@weiche/shared/ids.ts";
import { htmlPage } from "./html-pages.ts";

const page = { type: "text/html; charset=utf-8" };
const answers = {
  malformed: { head: "400 Bad Request", ...invalid("The request is not valid HTTP.", "400") },
  timeout: { head: "408 Request Timeout", ...invalid("The request did not arrive in time.", "408") },
  limited: { head: "503 Service Temporarily Unavailable\r\nretry-after: 1", ...page, body: htmlPage(503) },
  unsupported: { head: "403 Forbidden", ...page, body: htmlPage(403) },
} as const;

function invalid(message: string, code: string) {
  const error = { message, type: "invalid_request_error", param: null, code };
  return { type: "application/json; charset=utf-8", body: JSON.stringify({ error }) };
}

const readMsMax = 5_000;

/** Writes the answer and closes the connection, at most 5 s later even if the client does not read. */
export function answerRaw(socket: Duplex, what: keyof typeof answers, clock: Clock): void {
  // The socket of an upgrade has no error listener: without this one, a client's reset would end the process.
  socket.on("error", () => {});
  const { head, type, body } = answers[what];
  const headers = [
    `HTTP/1.1 ${head}`,
    `content-type: ${type}`,
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${uuidv7(clock)}`,
    "connection: close",
  ];
  const timer = clock.after(readMsMax, () => socket.destroy());
  socket.once("close", () => timer.cancel());
  socket.end(`${headers.join("\r\n")}\r\n\r\n${body}`, () => socket.destroy());
}
