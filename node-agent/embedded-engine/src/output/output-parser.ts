/**
 * Splits the text of a model, as it arrives, into reasoning, content and tool calls, and ends it at a stop string. Text
 * that may still become a tag or a stop string is held back, so that the result does not depend on where the pieces
 * were split. Pure.
 */
import type { OutputEvent } from "./output-event.ts";
import { ToolCallParser } from "./tool-call-parser.ts";

export interface ThinkingTags {
  readonly open: string;
  readonly close: string;
}

export interface OutputFormat {
  /** Undefined if the model is not known to reason. */
  readonly thinking?: ThinkingTags;
  /** The prompt has already opened the reasoning. */
  readonly startsThinking: boolean;
  /** `one`: the answer ends with its first call. */
  readonly tools: "none" | "one" | "many";
  /** Texts that end the content. They have no effect in reasoning and tool calls. */
  readonly stop: readonly string[];
}

/** Tags around a tool call, as in Hermes and most open models. */
export const toolCallTags = { open: "<tool_call>", close: "</tool_call>" };

/** `start`: reasoning may still come. `after`: after reasoning or a call, where white space is ignored. */
type Mode = "start" | "thinking" | "after" | "content" | "call" | "stopped";

export class OutputParser {
  readonly #format: OutputFormat;
  readonly #markers: readonly string[];
  #mode: Mode;
  #rest = "";
  #thought = false;
  #call: ToolCallParser | undefined;
  toolCalls = 0;

  constructor(format: OutputFormat) {
    this.#format = format;
    this.#markers = format.tools === "none" ? format.stop : [...format.stop, toolCallTags.open];
    this.#mode = format.startsThinking ? "thinking" : format.thinking ? "start" : "content";
  }

  /** Whether no further output will come, because a stop string was met or the only call is complete. */
  get stopped(): boolean {
    return this.#mode === "stopped";
  }

  get thinking(): boolean {
    return this.#mode === "thinking";
  }

  get inCall(): boolean {
    return this.#mode === "call";
  }

  push(text: string): OutputEvent[] {
    this.#rest += text;
    return this.#run(false);
  }

  /** Call this when the model has ended. Returns the text that was held back. */
  end(): OutputEvent[] {
    const events = this.#run(true);
    if (this.#mode === "call") {
      events.push(...this.#call!.end());
      this.#callEnded();
    }
    this.#mode = "stopped";
    return events;
  }

  #run(final: boolean): OutputEvent[] {
    const events: OutputEvent[] = [];
    let mode: Mode;
    do {
      mode = this.#mode;
      this.#step(mode, events, final);
    } while (this.#mode !== mode);
    return events;
  }

  #step(mode: Mode, events: OutputEvent[], final: boolean): void {
    switch (mode) {
      case "start":
        return this.#start(final);
      case "thinking":
        return this.#think(events, final);
      case "after":
        this.#rest = this.#rest.trimStart();
        if (this.#rest !== "") this.#mode = "content";
        return;
      case "content":
        return this.#content(events, final);
      case "call":
        return this.#continueCall(events);
      case "stopped":
        this.#rest = "";
        return;
    }
  }

  #start(final: boolean): void {
    const { open } = this.#format.thinking!;
    const text = this.#rest.trimStart();
    if (text.startsWith(open)) {
      this.#rest = text.slice(open.length);
      this.#mode = "thinking";
    } else if (final || !open.startsWith(text)) this.#mode = "content";
  }

  #think(events: OutputEvent[], final: boolean): void {
    const { close } = this.#format.thinking!;
    if (!this.#thought) this.#rest = this.#rest.trimStart();
    const end = this.#rest.indexOf(close);
    if (end >= 0) {
      this.#emit("reasoning", this.#rest.slice(0, end).trimEnd(), events);
      this.#rest = this.#rest.slice(end + close.length);
      this.#mode = "after";
      return;
    }
    const certain = final ? this.#rest.length : this.#rest.length - heldBack(this.#rest, [close]);
    this.#thought = this.#take("reasoning", this.#rest.slice(0, certain).trimEnd().length, events) || this.#thought;
  }

  #content(events: OutputEvent[], final: boolean): void {
    const hit = firstMarker(this.#rest, this.#markers);
    if (hit === undefined) {
      let certain = final ? this.#rest.length : this.#rest.length - heldBack(this.#rest, this.#markers);
      // White space before a call belongs to neither.
      if (!final && this.#format.tools !== "none") certain = this.#rest.slice(0, certain).trimEnd().length;
      this.#take("content", certain, events);
      return;
    }
    const before = this.#rest.slice(0, hit.index);
    this.#rest = this.#rest.slice(hit.index + hit.marker.length);
    if (hit.marker === toolCallTags.open && this.#format.tools !== "none") {
      this.#emit("content", before.trimEnd(), events);
      this.#call = new ToolCallParser(this.toolCalls, toolCallTags);
      this.#mode = "call";
    } else {
      this.#emit("content", before, events);
      this.#mode = "stopped";
    }
  }

  #continueCall(events: OutputEvent[]): void {
    events.push(...this.#call!.push(this.#rest));
    this.#rest = this.#call!.behind ?? "";
    if (this.#call!.behind === undefined) return;
    this.#callEnded();
    this.#mode = this.#format.tools === "one" && this.toolCalls > 0 ? "stopped" : "after";
  }

  #callEnded(): void {
    if (this.#call!.named) this.toolCalls += 1;
  }

  #take(kind: "reasoning" | "content", length: number, events: OutputEvent[]): boolean {
    this.#emit(kind, this.#rest.slice(0, length), events);
    this.#rest = this.#rest.slice(length);
    return length > 0;
  }

  #emit(kind: "reasoning" | "content", text: string, events: OutputEvent[]): void {
    if (text !== "") events.push({ kind, text });
  }
}

/** Returns the marker that is complete first when reading character by character, and of two the longer. */
function firstMarker(text: string, markers: readonly string[]): { index: number; marker: string } | undefined {
  let first: { index: number; marker: string } | undefined;
  for (const marker of markers) {
    const index = text.indexOf(marker);
    if (index < 0) continue;
    const later = first && index + marker.length - (first.index + first.marker.length);
    if (first === undefined || later! < 0 || (later === 0 && index < first.index)) first = { index, marker };
  }
  return first;
}

/** Returns the length of the longest suffix of `text` that is a prefix of a marker. */
function heldBack(text: string, markers: readonly string[]): number {
  let longest = 0;
  for (const marker of markers) {
    for (let length = Math.min(marker.length - 1, text.length); length > longest; length--) {
      if (text.endsWith(marker.slice(0, length))) longest = length;
    }
  }
  return longest;
}
