/** The messages of a chat, field by field. Images come as data or not at all: nothing is ever fetched for a client. */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import type { Json } from "../engines/dialects/json.ts";
import { asList, asObject, asOneOf, asText, refuse } from "./fields.ts";

export function readMessages(body: Json, { images }: ModelRules): object[] {
  const messages = asList(body["messages"], "messages");
  if (messages.length === 0) return refuse("messages", "at least one message");
  const budget = { max: images?.max ?? 0, used: 0 };
  return messages.map((message, index) => readMessage(message, `messages[${index}]`, budget));
}

interface ImageBudget {
  readonly max: number;
  used: number;
}

function readMessage(value: unknown, at: string, budget: ImageBudget): object {
  const message = asObject(value, at);
  const role = asOneOf(message["role"], `${at}.role`, ["system", "user", "assistant", "tool"]);
  const content = message["content"];
  switch (role) {
    case "system":
      return { role, content: readContent(content, `${at}.content`) };
    case "user":
      return { role, content: readContent(content, `${at}.content`, budget) };
    case "tool": {
      const tool_call_id = asText(message["tool_call_id"], `${at}.tool_call_id`);
      return { role, tool_call_id, content: readContent(content, `${at}.content`) };
    }
    case "assistant": {
      const calls = message["tool_calls"] ?? [];
      const tool_calls = asList(calls, `${at}.tool_calls`).map((call, i) => readCall(call, `${at}.tool_calls[${i}]`));
      // Templates join it with text: nothing must not become "None".
      const said = content == null ? "" : readContent(content, `${at}.content`);
      return tool_calls.length === 0 ? { role, content: said } : { role, content: said, tool_calls };
    }
  }
}

function readCall(value: unknown, at: string): object {
  const call = asObject(value, at);
  const called = asObject(call["function"], `${at}.function`);
  return {
    id: asText(call["id"], `${at}.id`),
    type: "function",
    function: {
      name: asText(called["name"], `${at}.function.name`),
      // Some clients send nothing for a call without arguments; templates and engines parse it.
      arguments: asText(called["arguments"], `${at}.function.arguments`).trim() || "{}",
    },
  };
}

function readContent(content: unknown, at: string, budget?: ImageBudget): string | object[] {
  if (typeof content === "string") return content;
  return asList(content, at).map((value, index) => {
    const partAt = `${at}[${index}]`;
    const part = asObject(value, partAt);
    const type = asOneOf(part["type"], `${partAt}.type`, budget ? ["text", "image_url"] : ["text"]);
    if (type === "text") return { type, text: asText(part["text"], `${partAt}.text`) };
    const image = asObject(part["image_url"], `${partAt}.image_url`);
    return { type, image_url: { url: readImage(image["url"], `${partAt}.image_url.url`, budget!) } };
  });
}

/** The router has looked at the first bytes. */
const dataUri = /^data:[\w.+-]+\/[\w.+-]+(?:;[\w.+-]+=[\w.+-]+)*;base64,/i;
const headCharactersMax = 200;

function readImage(value: unknown, at: string, budget: ImageBudget): string {
  const url = asText(value, at);
  const head = dataUri.exec(url.slice(0, headCharactersMax))?.[0];
  if (head === undefined) return refuse(at, "a Base64 data URI; links are not fetched");
  if (budget.max === 0) throw new ApiError("invalid_request", "This model takes no images.", { param: at });
  if (++budget.used > budget.max) return refuse(at, `one of at most ${budget.max} images in a request`);
  if (!isBase64(url.slice(head.length))) return refuse(at, "Base64 to its end, padded with =");
  return url;
}

/** Looks at each character once, a million in 1 ms; decoders pass over what they do not know, or stop there. */
function isBase64(text: string): boolean {
  const end = text.search(/[^A-Za-z0-9+/]/);
  return text !== "" && text.length % 4 === 0 && (end < 0 || /^={1,2}$/.test(text.slice(end)));
}
