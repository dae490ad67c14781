/** Reads the events of a chat's answer from its text. Pure. */
export interface ChatSummary {
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly credits: string | null;
  readonly firstTokenMs: number | null;
  readonly tokensPerSecond: number | null;
}

/** A piece of a tool call. The first one of a call has its id and name. */
export interface CallPiece {
  readonly index: number;
  readonly id?: string;
  readonly name?: string;
  readonly arguments?: string;
}

export type ChatEvent =
  /** `usualMs`: recent waiting time until the model was active. */
  | { readonly kind: "state"; readonly state: "active" | "activating"; readonly usualMs?: number }
  /** It waits in a slot. `position` 1: it is the next one for its model. `estimateMs`: in how long it is served. */
  | { readonly kind: "state"; readonly state: "waiting"; readonly position: number; readonly estimateMs: number }
  | {
      readonly kind: "piece";
      readonly content: string;
      readonly reasoning: string;
      readonly calls?: readonly CallPiece[];
      readonly finish?: string;
    }
  | { readonly kind: "done"; readonly summary: ChatSummary }
  | {
      readonly kind: "error";
      readonly status: number;
      readonly error: { readonly message: string; readonly code: string; readonly param?: string | null };
    };

interface Chunk {
  readonly choices?: readonly {
    readonly delta?: {
      readonly content?: unknown;
      readonly reasoning_content?: unknown;
      readonly tool_calls?: readonly {
        readonly index: number;
        readonly id?: string;
        readonly function?: { readonly name?: string; readonly arguments?: string };
      }[];
    };
    readonly finish_reason?: string | null;
  }[];
}

/** Takes text in pieces of any size, and keeps incomplete events. */
export class ChatEventReader {
  #rest = "";

  read(text: string): readonly ChatEvent[] {
    const events = (this.#rest + text).split("\n\n");
    this.#rest = events.pop()!;
    return events.flatMap((event) => readEvent(event) ?? []);
  }
}

function readEvent(event: string): ChatEvent | undefined {
  const lines = event.split("\n");
  const valueOf = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  const data = valueOf("data");
  if (data === undefined || data === "[DONE]") return undefined;
  const value = JSON.parse(data) as object;
  switch (valueOf("event") ?? "chunk") {
    case "state":
      return { kind: "state", ...value } as ChatEvent;
    case "done":
      return { kind: "done", summary: value as ChatSummary };
    case "error":
      return { kind: "error", ...(value as Omit<ChatEvent & { kind: "error" }, "kind">) };
    default:
      return readChunk(value as Chunk);
  }
}

function readChunk({ choices }: Chunk): ChatEvent | undefined {
  const { delta, finish_reason: finish } = choices?.[0] ?? {};
  const { content, reasoning_content: reasoning, tool_calls: calls } = delta ?? {};
  if (!content && !reasoning && !calls?.length && !finish) return undefined;
  return {
    ...{ kind: "piece", content: textOf(content), reasoning: textOf(reasoning) },
    ...(calls?.length && { calls: calls.map(({ index, id, function: part }) => ({ index, id, ...part })) }),
    ...(finish && { finish }),
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
