/**
 * Reads one tool call, `{"name": …, "arguments": {…}}`, up to its closing tag. The arguments are passed on as they
 * arrive, in the model's own spelling. Pure.
 */
import { isObject, parseJson } from "@weiche/shared/json.ts";
import type { OutputEvent } from "./output-event.ts";

const head = /^\s*\{\s*"name"\s*:\s*("(?:[^"\\<]|\\.)*")\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)/;

export class ToolCallParser {
  readonly #index: number;
  readonly #tags: { readonly open: string; readonly close: string };
  #phase: "head" | "arguments" | "tail" | "done" = "head";
  #text = "";
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** Whether the text turned out to be a call. */
  named = false;

  constructor(index: number, tags: { readonly open: string; readonly close: string }) {
    this.#index = index;
    this.#tags = tags;
  }

  /** The text after the closing tag. Undefined until the tag arrives. */
  get behind(): string | undefined {
    return this.#phase === "done" ? this.#text : undefined;
  }

  push(text: string): OutputEvent[] {
    this.#text += text;
    const events: OutputEvent[] = [];
    if (this.#phase === "head") this.#head(events);
    if (this.#phase === "arguments") this.#arguments(events);
    if (this.#phase === "tail") this.#tail();
    return events;
  }

  /** The model has ended without the closing tag. A call without a name is useless to a client. */
  end(): OutputEvent[] {
    if (this.#phase !== "head") return [];
    const call = readCall(this.#text);
    return call ? this.#whole(call) : [];
  }

  #head(events: OutputEvent[]): void {
    const match = head.exec(this.#text);
    if (match) {
      this.named = true;
      events.push({ kind: "tool-call", index: this.#index, name: unquote(match[1]!) });
      this.#text = this.#text.slice(match[0].length);
      this.#phase = "arguments";
      return;
    }
    const end = this.#text.indexOf(this.#tags.close);
    if (end < 0) return;
    const text = this.#text.slice(0, end);
    const call = readCall(text);
    if (call) events.push(...this.#whole(call));
    // It is not a call after all, so the client gets the model's text.
    else events.push({ kind: "content", text: this.#tags.open + text + this.#tags.close });
    this.#text = this.#text.slice(end + this.#tags.close.length);
    this.#phase = "done";
  }

  #arguments(events: OutputEvent[]): void {
    let length = 0;
    while (length < this.#text.length && this.#phase === "arguments") this.#scan(this.#text[length++]!);
    if (length > 0) events.push({ kind: "tool-arguments", index: this.#index, text: this.#text.slice(0, length) });
    this.#text = this.#text.slice(length);
  }

  #scan(character: string): void {
    if (this.#escaped) this.#escaped = false;
    else if (this.#inString) {
      if (character === "\\") this.#escaped = true;
      else if (character === '"') this.#inString = false;
    } else if (character === '"') this.#inString = true;
    else if (character === "{" || character === "[") this.#depth += 1;
    else if ((character === "}" || character === "]") && --this.#depth === 0) this.#phase = "tail";
  }

  #tail(): void {
    const end = this.#text.indexOf(this.#tags.close);
    if (end < 0) return;
    this.#text = this.#text.slice(end + this.#tags.close.length);
    this.#phase = "done";
  }

  #whole(call: { readonly name: string; readonly arguments: string }): OutputEvent[] {
    this.named = true;
    return [
      { kind: "tool-call", index: this.#index, name: call.name },
      { kind: "tool-arguments", index: this.#index, text: call.arguments },
    ];
  }
}

function readCall(text: string): { readonly name: string; readonly arguments: string } | undefined {
  const call = parseJson(text);
  if (!isObject(call) || typeof call["name"] !== "string") return undefined;
  const given = call["arguments"] ?? call["parameters"] ?? {};
  return { name: call["name"], arguments: typeof given === "string" ? given : JSON.stringify(given) };
}

function unquote(text: string): string {
  return (parseJson(text) as string | undefined) ?? text.slice(1, -1);
}
