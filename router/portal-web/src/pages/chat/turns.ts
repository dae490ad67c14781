/** The turns of a conversation, and the messages of the API's request that they make. Pure. */
import type { Problem } from "../../api/problem.ts";
import type { CallPiece, ChatSummary } from "./chat-events.ts";
import type { ChatBody, Message, ReadSettings } from "./chat-settings.ts";

export interface Picture {
  readonly name: string;
  /** A data URI. */
  readonly url: string;
}

export interface Question {
  readonly kind: "question";
  readonly id: number;
  readonly text: string;
  readonly pictures: readonly Picture[];
}

interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON, as the model wrote it. */
  readonly arguments: string;
}

export interface AnswerTurn {
  readonly kind: "answer";
  readonly id: number;
  /** The model that was asked. */
  readonly model: string;
  readonly content: string;
  readonly reasoning: string;
  readonly calls: readonly ToolCall[];
  /** What the person typed as the result of each call. */
  readonly results: readonly string[];
  /** Whether the results were sent. */
  readonly isResumed: boolean;
  /** Whether it is still being written, and how it ended. */
  readonly state: "waiting" | "activating" | "writing" | "done" | "stopped" | "failed";
  /** `length`: the limit on tokens cut it off. */
  readonly finish?: string;
  /** Recent waiting time for the model in ms, while it is being activated. */
  readonly usualMs?: number | undefined;
  /** The position of the request while it waits for its model. */
  readonly standing?: { readonly position: number; readonly estimateMs: number };
  readonly summary?: ChatSummary;
  readonly problem?: Problem;
  /** Of an answer whose stream has begun. */
  readonly requestId?: string | null;
}

export type Turn = Question | AnswerTurn;

/** A conversation with one model. Two of them stand side by side. */
export interface Lane {
  /** If undefined, the first model that the person may call. */
  readonly model?: string;
  /** If undefined, the model's default applies. */
  readonly effort?: string;
  readonly turns: readonly Turn[];
  /** The last request, as it was sent. */
  readonly asked?: ChatBody;
}

export function newAnswer(id: number, model: string): AnswerTurn {
  return {
    ...{ kind: "answer", id, model, content: "", reasoning: "" },
    ...{ calls: [], results: [], isResumed: false, state: "waiting" },
  };
}

export function isRunning(turn: Turn | undefined): boolean {
  return turn?.kind === "answer" && ["waiting", "activating", "writing"].includes(turn.state);
}

/** Returns whether the model waits for results of its calls. */
export function isCalling(turn: Turn | undefined): turn is AnswerTurn {
  return turn?.kind === "answer" && turn.calls.length > 0 && !turn.isResumed && !isRunning(turn);
}

/** Returns the body that asks for the next turn. It is sent as it is, and shown as code. */
export function bodyOf(
  { model, effort, turns }: Lane & { readonly model: string },
  { parts: { system, ...settings } }: ReadSettings,
): ChatBody {
  const messages = turns.flatMap(messagesOf);
  return {
    model,
    messages: system === undefined ? messages : [{ role: "system", content: system }, ...messages],
    ...settings,
    ...(effort !== undefined && { reasoning_effort: effort }),
    stream: true,
    stream_options: { include_usage: true },
  };
}

function messagesOf(turn: Turn): readonly Message[] {
  if (turn.kind === "question") return [questionOf(turn)];
  const { content, calls, results, isResumed } = turn;
  // An answer that never began does not belong to the conversation. Calls without results would be refused.
  if (calls.length === 0 || !isResumed) return content === "" ? [] : [{ role: "assistant", content }];
  const made = calls.map(({ id, name, arguments: given }) => ({
    ...{ id, type: "function" as const },
    function: { name, arguments: given },
  }));
  return [
    { role: "assistant", ...(content !== "" && { content }), tool_calls: made },
    ...calls.map(({ id }, at) => ({ role: "tool" as const, tool_call_id: id, content: results[at] ?? "" })),
  ];
}

function questionOf({ text, pictures }: Question): Message {
  if (pictures.length === 0) return { role: "user", content: text };
  return {
    role: "user",
    content: [
      ...(text.trim() === "" ? [] : [{ type: "text" as const, text }]),
      ...pictures.map(({ url }) => ({ type: "image_url" as const, image_url: { url } })),
    ],
  };
}

/** Adds pieces to the calls. The first piece of a call has its id and name. */
export function withPieces(calls: readonly ToolCall[], pieces: readonly CallPiece[]): readonly ToolCall[] {
  const next = [...calls];
  for (const { index, id = "", name = "", arguments: more = "" } of pieces) {
    const before = next[index] ?? { id: "", name: "", arguments: "" };
    next[index] = { id: before.id || id, name: before.name || name, arguments: before.arguments + more };
  }
  return next;
}
