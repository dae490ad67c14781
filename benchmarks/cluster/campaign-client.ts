/**
 * A client of the API for campaigns of faults: asks in any form, reads slowly, leaves when it was told to, and knows nothing
 * but what it received.
 */
import { request, type IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

export interface Wish {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly kind: "stream" | "json" | "embeddings";
  readonly model: string;
  /** By which the engines know the request, also where no id ever came back. */
  readonly mark: number;
  /** More words for the simulated engine: `itl=5`. */
  readonly steering?: string;
  /** The client leaves after so many pieces, or so long after its question. */
  readonly leaves?: { readonly afterPieces: number } | { readonly afterMs: number };
  /** A slow client waits so long before each read. */
  readonly readEveryMs?: number;
  readonly onPiece?: (pieces: number) => unknown;
}

/**
 * `whole`: the answer came to its end. `left`: the client ended it before. `error`: an error event came. `refused`: an error
 * status. `broken`: the connection ended before any of these.
 */
export type Ending = "whole" | "left" | "error" | "refused" | "broken";

/** What a client knows of its request. */
export interface Received {
  readonly mark: number;
  readonly kind: Wish["kind"];
  readonly ending: Ending;
  /** From `x-request-id`; undefined: no head came. */
  readonly id?: string;
  readonly status?: number;
  readonly code?: string;
  /** Of its content, each of one token. */
  readonly pieces: number;
  /** What a whole answer says that it costs. */
  readonly usage?: { readonly promptTokens: number; readonly completionTokens: number };
  /** Wall time, for comparison with what engines say. */
  readonly endedAtMs: number;
}

export function askOnce(wish: Wish): Promise<Received> {
  return new Asking(wish).ended;
}

class Asking {
  readonly ended: Promise<Received>;
  readonly #wish: Wish;
  readonly #resolve: (received: Received) => void;
  #seen: Partial<Received> = {};
  #pieces = 0;

  constructor(wish: Wish) {
    this.#wish = wish;
    const { promise, resolve } = Promise.withResolvers<Received>();
    this.ended = promise;
    this.#resolve = resolve;
    const call = request(`${wish.baseUrl}${pathOf(wish)}`, {
      method: "POST",
      agent: false,
      headers: { authorization: `Bearer ${wish.apiKey}`, "content-type": "application/json" },
    });
    const { leaves } = wish;
    const timer = leaves && "afterMs" in leaves ? setTimeout(() => this.#end("left"), leaves.afterMs) : undefined;
    void promise.then(() => {
      clearTimeout(timer);
      call.destroy();
    });
    call.on("error", () => this.#end("broken"));
    call.on("close", () => this.#seen.status ?? this.#end("broken"));
    call.on("response", (response) => void this.#read(response).catch(() => this.#end("broken")));
    call.end(JSON.stringify(bodyOf(wish)));
  }

  /** The first ending counts. */
  #end(ending: Ending): void {
    const { mark, kind } = this.#wish;
    this.#resolve({ mark, kind, ...this.#seen, pieces: this.#pieces, ending, endedAtMs: Date.now() });
  }

  async #read(response: IncomingMessage): Promise<void> {
    const id = response.headers["x-request-id"] as string;
    this.#seen = { id, status: response.statusCode! };
    if (response.statusCode !== 200 || this.#wish.kind !== "stream") return this.#readBody(response);
    for await (const event of eventsOf(response, this.#wish.readEveryMs)) {
      if (event === "[DONE]") return this.#end("whole");
      const chunk = JSON.parse(event) as Chunk;
      if (chunk.error) this.#seen = { ...this.#seen, code: chunk.error.code };
      if (chunk.error) return this.#end("error");
      if (chunk.usage) this.#seen = { ...this.#seen, usage: usageOf(chunk.usage) };
      if (chunk.choices?.[0]?.delta.content) this.#piece();
    }
    this.#end("broken");
  }

  async #readBody(response: IncomingMessage): Promise<void> {
    let text = "";
    for await (const bytes of response) {
      text += String(bytes);
      if (this.#wish.readEveryMs) await sleep(this.#wish.readEveryMs);
    }
    if (!response.complete) return this.#end("broken");
    const { error, usage } = JSON.parse(text) as Chunk;
    if (error) this.#seen = { ...this.#seen, code: error.code };
    if (usage) this.#seen = { ...this.#seen, usage: usageOf(usage) };
    this.#end(error ? "refused" : "whole");
  }

  #piece(): void {
    this.#pieces++;
    this.#wish.onPiece?.(this.#pieces);
    const { leaves } = this.#wish;
    if (leaves && "afterPieces" in leaves && this.#pieces >= leaves.afterPieces) this.#end("left");
  }
}

interface Chunk {
  readonly error?: { readonly code: string };
  readonly choices?: readonly { readonly delta: { readonly content?: string } }[];
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens?: number } | null;
}

function usageOf(usage: NonNullable<Chunk["usage"]>): NonNullable<Received["usage"]> {
  return { promptTokens: usage.prompt_tokens, completionTokens: usage.completion_tokens ?? 0 };
}

function pathOf({ kind }: Wish): string {
  return kind === "embeddings" ? "/embeddings" : "/chat/completions";
}

function bodyOf({ kind, model, mark, steering }: Wish): object {
  const content = `sim:${["mark=" + mark, steering].filter(Boolean).join(",")} go on`;
  if (kind === "embeddings") return { model, input: content };
  const streamed = kind === "stream" && { stream: true, stream_options: { include_usage: true } };
  return { model, messages: [{ role: "user", content }], ...streamed };
}

async function* eventsOf(response: IncomingMessage, readEveryMs = 0): AsyncGenerator<string> {
  let text = "";
  for await (const bytes of response) {
    const parts = (text + String(bytes)).split("\n\n");
    text = parts.pop()!;
    for (const part of parts) yield part.slice("data: ".length);
    if (readEveryMs > 0) await sleep(readEveryMs);
  }
}
