/**
 * A conversation with a model: its messages, the current answer, and a function to stop it. It lives in the memory of this
 * tab, so that a look at another page does not lose it, and is stored nowhere.
 */
import { useEffect, useState, useSyncExternalStore } from "react";
import { call, request } from "../../api/client.ts";
import type { ChatMessage } from "../../elements/snippet/snippet-code.ts";
import { Problem } from "../../api/problem.ts";
import { ChatEventReader, type ChatEvent, type ChatSummary } from "./chat-events.ts";

export interface Turn {
  /** The model that was asked. */
  readonly model: string;
  readonly role: "user" | "assistant";
  readonly content: string;
  readonly reasoning: string;
  /** The state of an answer: whether it is still being written, and how it ended. */
  readonly state: "said" | "waiting" | "activating" | "writing" | "done" | "stopped" | "failed";
  /** Recent waiting time for the model in ms, while it is being activated. */
  readonly usualMs?: number | undefined;
  /** The position of the request while it waits for its model. */
  readonly standing?: { readonly position: number; readonly estimateMs: number };
  readonly summary?: ChatSummary;
  readonly problem?: Problem;
  /** Of an answer whose stream has begun. */
  readonly requestId?: string | null;
}

interface ChatSettings {
  readonly model: string;
  /** If undefined, the model's default applies. */
  readonly reasoningEffort?: string;
}

interface ChatRequest extends ChatSettings {
  readonly messages: readonly ChatMessage[];
}

interface Kept {
  readonly turns: readonly Turn[];
  /** What is typed and not sent. */
  readonly draft: string;
  readonly settings?: ChatSettings;
  /** The last request as it was sent. */
  readonly asked?: ChatRequest;
}

interface Conversation extends Kept {
  readonly isRunning: boolean;
  readonly keep: (parts: Pick<Kept, "draft"> | Pick<Kept, "settings">) => void;
  readonly send: (content: string, settings: ChatSettings) => void;
  readonly stop: () => void;
  readonly clear: () => void;
}

const empty: Kept = { turns: [], draft: "" };

class ConversationStore {
  #kept = empty;
  #running: AbortController | undefined;
  readonly #listeners = new Set<() => void>();

  readonly now = (): Kept => this.#kept;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly keep = (parts: Partial<Kept>): void => {
    this.#kept = { ...this.#kept, ...parts };
    for (const listener of this.#listeners) listener();
  };

  readonly send = (content: string, settings: ChatSettings): void => {
    const { model } = settings;
    const { turns } = this.#kept;
    const question: Turn = { model, role: "user", content, reasoning: "", state: "said" };
    const asked: ChatRequest = { ...settings, messages: messagesOf([...turns, question]) };
    const waiting: Turn = { model, role: "assistant", content: "", reasoning: "", state: "waiting" };
    this.keep({ turns: [...turns, question, waiting], asked, draft: "" });
    const controller = new AbortController();
    this.#running = controller;
    void answer(asked, controller.signal, (more) => {
      const answered = this.#kept.turns.at(-1);
      if (!answered || this.#running !== controller) return;
      this.keep({ turns: [...this.#kept.turns.slice(0, -1), { ...answered, ...more(answered) }] });
    }).then(() => this.#showCost());
  };

  /** The stream of a stopped answer ends without its sum, which is known once the node's record has been committed. */
  async #showCost(): Promise<void> {
    const { state, requestId } = this.#kept.turns.at(-1) ?? {};
    if (state !== "stopped" || !requestId) return;
    const summary = await costOf(requestId);
    if (!summary) return;
    const turns = this.#kept.turns.map((turn) => (turn.requestId === requestId ? { ...turn, summary } : turn));
    this.keep({ turns });
  }

  readonly stop = (): void => this.#running?.abort();

  readonly clear = (): void => {
    this.stop();
    this.#running = undefined;
    const { draft, settings } = this.#kept;
    this.#kept = empty;
    this.keep({ draft, ...(settings && { settings }) });
  };
}

/** By user, because another person may sign in in this tab. */
const stores = new Map<string, ConversationStore>();

export function useConversation(userId: string): Conversation {
  const [store] = useState(() => {
    const found = stores.get(userId) ?? new ConversationStore();
    stores.clear();
    stores.set(userId, found);
    return found;
  });
  const kept = useSyncExternalStore(store.subscribe, store.now);
  const last = kept.turns.at(-1);
  const isRunning = last?.role === "assistant" && ["waiting", "activating", "writing"].includes(last.state);
  // Leaving the page ends the answer. Otherwise it would be billed to its end.
  useEffect(() => store.stop, [store]);
  const { send, stop, clear, keep } = store;
  return { ...kept, isRunning, send, stop, clear, keep };
}

/** An answer that never began does not belong to the conversation. */
function messagesOf(turns: readonly Turn[]): readonly ChatMessage[] {
  return turns
    .filter((turn) => turn.role === "user" || turn.content !== "")
    .map(({ role, content }) => ({ role, content }));
}

type Change = (more: (answer: Turn) => Partial<Turn>) => void;

async function answer({ messages, ...settings }: ChatRequest, signal: AbortSignal, change: Change) {
  let isOver = false;
  try {
    const response = await request("chat", { body: { ...settings, messages: [...messages] } }, signal);
    change(() => ({ requestId: response.headers.get("x-request-id") }));
    const reader = new ChatEventReader();
    const decoder = new TextDecoder();
    const body = response.body!.getReader();
    for (let piece = await body.read(); !piece.done; piece = await body.read()) {
      for (const event of reader.read(decoder.decode(piece.value, { stream: true }))) {
        change((before) => changeOf(event, before));
        isOver ||= event.kind === "error" || event.kind === "done";
      }
    }
    if (!isOver) throw new Problem(0, { code: "cut_off" });
  } catch (error) {
    if (signal.aborted) change(() => ({ state: "stopped" }));
    else change(() => ({ state: "failed", problem: error instanceof Problem ? error : new Problem(0, {}) }));
  }
}

/** How long to wait before each question for a stopped answer's cost. */
const costPausesMs = [300, 700, 1_500, 3_000, 6_000, 12_000];

async function costOf(id: string): Promise<ChatSummary | undefined> {
  for (const pauseMs of costPausesMs) {
    await new Promise((done) => setTimeout(done, pauseMs));
    const found = await call("showChatCost", { params: { id } }).catch(() => undefined);
    if (found?.usage) return { ...found.usage, firstTokenMs: null, tokensPerSecond: null };
  }
  return undefined;
}

function changeOf(event: ChatEvent, before: Turn): Partial<Turn> {
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
      };
    case "done":
      return { state: "done", summary: event.summary };
    case "error":
      return { state: "failed", problem: new Problem(event.status, event.error) };
  }
}
