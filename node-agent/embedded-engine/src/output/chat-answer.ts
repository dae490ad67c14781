/** The answer to a chat: as chunks, or collected into one body. */
import { noCounts, type AnswerPart, type AnswerPlan } from "./answer.ts";
import { envelopeOf, EventStream, sendJson, type Call } from "../request/call.ts";
import type { ChatRequest } from "../request/chat-request.ts";
import type { TokenLogprob } from "./logprobs.ts";
import type { OutputEvent } from "./output-event.ts";
import { usageOf } from "./usage.ts";

export class ChatStream {
  readonly #call: Call;
  readonly #events: EventStream;
  readonly #envelope: ReturnType<typeof envelopeOf>;
  readonly #request: ChatRequest;
  readonly #promptTokens: number;
  readonly #counts: AnswerPart["counts"][];
  readonly #begun = new Set<number>();

  constructor(call: Call, request: ChatRequest, plans: readonly AnswerPlan[]) {
    this.#call = call;
    this.#events = new EventStream(call);
    this.#envelope = envelopeOf(call, "chatcmpl", "chat.completion.chunk");
    this.#request = request;
    this.#promptTokens = plans[0]!.promptTokens.length;
    this.#counts = plans.map(() => noCounts);
  }

  async add(index: number, part: AnswerPart): Promise<void> {
    if (!this.#begun.has(index)) {
      this.#begun.add(index);
      await this.#send(index, { role: "assistant", content: "" });
    }
    this.#counts[index] = part.counts;
    let { logprobs } = part;
    for (const event of part.events) {
      const shown = event.kind === "content" ? logprobs : [];
      await this.#send(index, this.#delta(event), shown);
      if (event.kind === "content") logprobs = [];
    }
    // Held-back text was generated too, and a reader that counts tokens needs its usage.
    if (part.events.length === 0 && this.#request.continuousUsage && !part.finish) await this.#send(index, {});
    if (part.finish) await this.#send(index, {}, [], part.finish);
  }

  async end(): Promise<void> {
    if (this.#request.includeUsage) await this.#events.send({ ...this.#envelope, choices: [], usage: this.#usage() });
    this.#events.end();
  }

  #send(
    index: number,
    delta: object,
    logprobs: readonly TokenLogprob[] = [],
    finish: AnswerPart["finish"] | null = null,
  ): Promise<void> {
    return this.#events.send({
      ...this.#envelope,
      choices: [{ index, delta, logprobs: logprobs.length > 0 ? { content: logprobs } : null, finish_reason: finish }],
      ...(this.#request.continuousUsage && { usage: this.#usage() }),
    });
  }

  #delta(event: OutputEvent): object {
    switch (event.kind) {
      case "reasoning":
        return { reasoning_content: event.text };
      case "content":
        return { content: event.text };
      case "tool-call": {
        const id = `call_${this.#call.surroundings.randomId()}`;
        const called = { name: event.name, arguments: "" };
        return { tool_calls: [{ index: event.index, id, type: "function", function: called }] };
      }
      case "tool-arguments":
        return { tool_calls: [{ index: event.index, function: { arguments: event.text } }] };
    }
  }

  #usage() {
    return usageOf(this.#promptTokens, this.#counts);
  }
}

interface Collected {
  content: string;
  reasoning: string;
  readonly calls: { readonly name: string; arguments: string }[];
  readonly logprobs: TokenLogprob[];
  counts: AnswerPart["counts"];
  finish: AnswerPart["finish"];
}

export class ChatBody {
  readonly #call: Call;
  readonly #promptTokens: number;
  readonly #choices: readonly Collected[];
  readonly #withLogprobs: boolean;

  constructor(call: Call, plans: readonly AnswerPlan[]) {
    this.#call = call;
    this.#promptTokens = plans[0]!.promptTokens.length;
    this.#withLogprobs = plans[0]!.logprobs !== undefined;
    const empty = () => ({ content: "", reasoning: "", calls: [], logprobs: [], counts: noCounts, finish: undefined });
    this.#choices = plans.map(empty);
  }

  add(index: number, part: AnswerPart): void {
    const choice = this.#choices[index]!;
    for (const event of part.events) collect(choice, event);
    choice.logprobs.push(...part.logprobs);
    choice.counts = part.counts;
    choice.finish = part.finish;
  }

  end(): void {
    const choices = this.#choices.map((choice, index) => ({
      index,
      message: this.#message(choice),
      logprobs: this.#withLogprobs ? { content: choice.logprobs } : null,
      finish_reason: choice.finish,
    }));
    const usage = usageOf(
      this.#promptTokens,
      this.#choices.map(({ counts }) => counts),
    );
    sendJson(this.#call.response, 200, { ...envelopeOf(this.#call, "chatcmpl", "chat.completion"), choices, usage });
  }

  #message({ content, reasoning, calls }: Collected) {
    const toolCalls = calls.map((called) => ({
      id: `call_${this.#call.surroundings.randomId()}`,
      type: "function",
      function: called,
    }));
    return {
      role: "assistant",
      // An answer with only reasoning or calls has no content, not empty content.
      content: content === "" && (reasoning !== "" || calls.length > 0) ? null : content,
      ...(reasoning !== "" && { reasoning_content: reasoning }),
      ...(calls.length > 0 && { tool_calls: toolCalls }),
    };
  }
}

function collect(choice: Collected, event: OutputEvent): void {
  switch (event.kind) {
    case "reasoning":
      choice.reasoning += event.text;
      return;
    case "content":
      choice.content += event.text;
      return;
    case "tool-call":
      choice.calls.push({ name: event.name, arguments: "" });
      return;
    case "tool-arguments":
      choice.calls[event.index]!.arguments += event.text;
  }
}
