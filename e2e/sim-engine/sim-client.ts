/** Sends a request to a simulated engine in tests and reads the answer to any end. */
import { field, text } from "./request.ts";

export interface Heard {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The data of the events without the terminator. */
  readonly events: readonly Record<string, unknown>[];
  readonly terminated: boolean;
  /** Whether the connection ended with an error. */
  readonly broken: boolean;
}

export async function ask(origin: string, path: string, body?: unknown, init: RequestInit = {}): Promise<Heard> {
  const given = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const response = await fetch(origin + path, { ...given, ...init });
  let heard = "";
  let broken = false;
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response.body ?? []) heard += decoder.decode(chunk as Uint8Array, { stream: true });
  } catch {
    broken = true;
  }
  const lines = heard.split("\n\n").filter((line) => line.startsWith("data: {"));
  return {
    status: response.status,
    headers: response.headers,
    text: heard,
    events: lines.flatMap((line) => parsed(line.slice(6))),
    terminated: heard.includes("data: [DONE]"),
    broken,
  };
}

export function chat(origin: string, content: string, more: object = {}, init?: RequestInit): Promise<Heard> {
  return ask(origin, "/v1/chat/completions", { messages: [{ role: "user", content }], stream: true, ...more }, init);
}

/** Joins the texts in the deltas of one choice. */
export function said({ events }: Heard, name: "content" | "reasoning" | "reasoning_content" | "text", choice = 0) {
  return events
    .flatMap((event) => (event["choices"] ?? []) as Record<string, unknown>[])
    .filter((each) => each["index"] === choice)
    .map((each) => text((name === "text" ? each["text"] : field(each["delta"], name)) ?? ""))
    .join("");
}

function parsed(json: string): Record<string, unknown>[] {
  try {
    return [JSON.parse(json) as Record<string, unknown>];
  } catch {
    return [];
  }
}
