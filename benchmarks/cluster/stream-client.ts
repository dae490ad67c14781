/** A client of the API that streams, and knows nothing but what it received. */

export interface Question {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly model: string;
  /** May begin with a word that steers the simulated engine: `sim:tokens=5`. */
  readonly text: string;
  readonly signal?: AbortSignal;
  readonly onPiece?: (pieces: number) => void;
}

/** How one request ended, as its client saw it. */
export interface Seen {
  readonly id: string | undefined;
  readonly status: number;
  /** `whole`: the terminator came. `error`: an error event. `broken`: neither. `refused`: a status. */
  readonly ending: "whole" | "error" | "broken" | "refused";
  /** Of a refusal. */
  readonly code?: string;
  readonly retryAfterSeconds?: number;
  readonly pieces: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly firstByteMs?: number;
  /** Wall time of the sending, for comparison with an engine's own times. */
  readonly sentAtMs: number;
}

export async function askStream(question: Question): Promise<Seen> {
  const { baseUrl, apiKey, model, text, signal, onPiece } = question;
  const [sentAtMs, startMs] = [Date.now(), performance.now()];
  const seen = { id: undefined as string | undefined, status: 0, pieces: 0, promptTokens: 0, completionTokens: 0 };
  let firstByteMs: number | undefined;
  const ended = (ending: Seen["ending"], more: Partial<Seen> = {}): Seen => ({
    ...{ ...seen, ending, sentAtMs },
    ...(firstByteMs === undefined ? {} : { firstByteMs }),
    ...more,
  });
  try {
    const answer = await fetch(`${baseUrl}/chat/completions`, {
      method: "POST",
      ...(signal ? { signal } : {}),
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({
        ...{ model, stream: true, stream_options: { include_usage: true } },
        messages: [{ role: "user", content: text }],
      }),
    });
    seen.status = answer.status;
    seen.id = answer.headers.get("x-request-id") ?? undefined;
    if (answer.status !== 200) {
      const { error } = (await answer.json()) as { error: { code: string } };
      const retryAfter = answer.headers.get("retry-after");
      return ended("refused", {
        code: error.code,
        ...(retryAfter === null ? {} : { retryAfterSeconds: Number(retryAfter) }),
      });
    }
    for await (const event of events(answer.body!, () => (firstByteMs ??= performance.now() - startMs))) {
      if (event === "[DONE]") return ended("whole");
      const chunk = JSON.parse(event) as Chunk;
      if (chunk.error) return ended("error", { code: chunk.error.code });
      if (chunk.usage) {
        seen.promptTokens = chunk.usage.prompt_tokens;
        seen.completionTokens = chunk.usage.completion_tokens;
      }
      if (chunk.choices?.[0]?.delta.content) onPiece?.(++seen.pieces);
    }
    return ended("broken");
  } catch {
    return ended("broken");
  }
}

interface Chunk {
  readonly error?: { readonly code: string };
  readonly choices?: readonly { readonly delta: { readonly content?: string } }[];
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number };
}

async function* events(body: ReadableStream<Uint8Array>, onBytes: () => void): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of body) {
    onBytes();
    text += decoder.decode(bytes, { stream: true });
    const parts = text.split("\n\n");
    text = parts.pop()!;
    for (const part of parts) yield part.slice("data: ".length);
  }
}
