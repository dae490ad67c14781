/** Reads a request's body into memory, with bounds on size and time. */
import type { IncomingHttpHeaders } from "node:http";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import { PageRefusal } from "../../edge/html-pages.ts";
import type { Exchange } from "../exchange.ts";
import { BodyReceiver, bodyBytesMax, type BodyTimes } from "./body-receiver.ts";
import type { HeldBody } from "./held-body.ts";

/** Reads the body into `held`. Throws before the first byte if the headers already forbid the body. */
export async function readBody(exchange: Exchange, held: HeldBody, times: BodyTimes, clock: Clock): Promise<void> {
  const { headers } = exchange.request;
  const announced = headers["content-length"];
  const bytes = announced === undefined ? undefined : Number(announced);
  if (bytes !== undefined && bytes > bodyBytesMax) throw new PageRefusal("body_too_large");
  requireJson(headers);
  exchange.continue();
  const body = await new BodyReceiver(exchange, bytes, held, times, clock).whole;
  // Editors on Windows write a byte order mark, which JSON forbids; spaces are allowed.
  if (body.subarray(0, byteOrderMark.length).equals(byteOrderMark)) body.fill(" ", 0, byteOrderMark.length);
  held.fill(body);
}

const byteOrderMark = Buffer.from("\ufeff");

function requireJson(headers: IncomingHttpHeaders): void {
  const type = headers["content-type"]?.split(";", 1)[0]!.trim().toLowerCase();
  if (type !== "application/json")
    throw new ApiError("invalid_request", "The header Content-Type must be application/json.");
  const encoding = headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  if (encoding !== "identity") throw new ApiError("invalid_request", "A body with a Content-Encoding is not accepted.");
}
