/** A conversation with a model: its messages, the current answer, and a function to stop it. */
import { useEffect, useRef, useState } from "react";
import { request } from "../../api/client.ts";
import { Problem } from "../../api/problem.ts";
import { ChatEventReader, type ChatEvent, type ChatSummary } from "./chat-events.ts";

export interface Turn {
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
}

interface ChatSettings {
  readonly model: string;
  /** If undefined, the model's default applies. */
  readonly reasoningEffort?: string;
}

interface Conversation {
  readonly turns: readonly Turn[];
  readonly isRunning: boolean;
  readonly send: (content: string, settings: ChatSettings) => void;
  readonly stop: () => void;
  readonly clear: () => void;
}

export function useConversation(): Conversation {
  const [turns, setTurns] = useState<readonly Turn[]>([]);
  const running = useRef<AbortController>(undefined);
  const last = turns.at(-1);
  const isRunning = last?.role === "assistant" && ["waiting", "activating", "writing"].includes(last.state);
  // Leaving the page ends the answer. Otherwise it would be billed to its end.
  useEffect(() => () => running.current?.abort(), []);
  return {
    turns,
    isRunning,
    send(content, settings) {
      const asked: Turn = { role: "user", content, reasoning: "", state: "said" };
      // An answer that never began does not belong to the conversation.
      const said = [...turns.filter((turn) => turn.role === "user" || turn.content !== ""), asked];
      setTurns([...turns, asked, { role: "assistant", content: "", reasoning: "", state: "waiting" }]);
      const controller = new AbortController();
      running.current = controller;
      void answer(said, settings, controller.signal, (more) =>
        setTurns((before) => {
          const answered = before.at(-1);
          return answered && running.current === controller
            ? [...before.slice(0, -1), { ...answered, ...more(answered) }]
            : before;
        }),
      );
    },
    stop: () => running.current?.abort(),
    clear() {
      running.current?.abort();
      running.current = undefined;
      setTurns([]);
    },
  };
}

type Change = (more: (answer: Turn) => Partial<Turn>) => void;

async function answer(turns: readonly Turn[], settings: ChatSettings, signal: AbortSignal, change: Change) {
  const messages = turns.map(({ role, content }) => ({ role, content }));
  let isOver = false;
  try {
    const response = await request("chat", { body: { ...settings, messages } }, signal);
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
