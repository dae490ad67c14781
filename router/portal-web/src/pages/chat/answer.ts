/** Asks for one answer of a chat, and follows it to its end. */
import { call, request } from "../../api/client.ts";
import { Problem } from "../../api/problem.ts";
import { ChatEventReader, type ChatEvent, type ChatSummary } from "./chat-events.ts";
import type { ChatBody } from "./chat-settings.ts";
import { withPieces, type AnswerTurn } from "./turns.ts";

type Change = (more: (answer: AnswerTurn) => Partial<AnswerTurn>) => void;

/** Resolves at the end of the answer, and never rejects. */
export async function follow(body: ChatBody, signal: AbortSignal, change: Change): Promise<void> {
  let isOver = false;
  try {
    const response = await request("chat", { body }, signal);
    change(() => ({ requestId: response.headers.get("x-request-id") }));
    const reader = new ChatEventReader();
    const decoder = new TextDecoder();
    const stream = response.body!.getReader();
    for (let piece = await stream.read(); !piece.done; piece = await stream.read()) {
      const events = reader.read(decoder.decode(piece.value, { stream: true }));
      if (events.length > 0)
        change((before) => events.reduce((answer, event) => ({ ...answer, ...changeOf(event, answer) }), before));
      isOver ||= events.some(({ kind }) => kind === "error" || kind === "done");
    }
    if (!isOver) throw new Problem(0, { code: "cut_off" });
  } catch (error) {
    if (signal.aborted) change(() => ({ state: "stopped" }));
    else change(() => ({ state: "failed", problem: error instanceof Problem ? error : new Problem(0, {}) }));
  }
}

/** How long to wait before each question for a stopped answer's cost. */
const costPausesMs = [300, 700, 1_500, 3_000, 6_000, 12_000];

/** The stream of a stopped answer ends without its sum, which is known once the node's record has been committed. */
export async function costOf(id: string): Promise<ChatSummary | undefined> {
  for (const pauseMs of costPausesMs) {
    await new Promise((done) => setTimeout(done, pauseMs));
    const found = await call("showChatCost", { params: { id } }).catch(() => undefined);
    if (found?.usage) return { ...found.usage, firstTokenMs: null, tokensPerSecond: null };
  }
  return undefined;
}

function changeOf(event: ChatEvent, before: AnswerTurn): Partial<AnswerTurn> {
  switch (event.kind) {
    case "state":
      if (event.state === "waiting") {
        const { position, estimateMs } = event;
        return { standing: { position, estimateMs } };
      }
      return event.state === "activating" ? { state: "activating", usualMs: event.usualMs } : {};
    case "piece":
      return {
        state: "writing",
        content: before.content + event.content,
        reasoning: before.reasoning + event.reasoning,
        ...(event.calls && { calls: withPieces(before.calls, event.calls) }),
        ...(event.finish && { finish: event.finish }),
      };
    case "done":
      return { state: "done", summary: event.summary };
    case "error":
      return { state: "failed", problem: new Problem(event.status, event.error) };
  }
}
