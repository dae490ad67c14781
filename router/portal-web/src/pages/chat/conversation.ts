/**
 * The conversations of the playground: one, or two side by side with the same questions. They live in the memory of this
 * tab and in its session storage, so that neither a look at another page nor a reload loses them.
 */
import { useEffect, useState, useSyncExternalStore } from "react";
import { keptInTab } from "../../session/kept-in-tab.ts";
import { costOf, follow } from "./answer.ts";
import { noSettings, readSettings, type TypedSettings } from "./chat-settings.ts";
import { bodyOf, isRunning, newAnswer, type AnswerTurn, type Lane, type Picture, type Turn } from "./turns.ts";

interface Kept {
  readonly lanes: readonly Lane[];
  /** What is typed and not sent. */
  readonly draft: string;
  readonly pictures: readonly Picture[];
  readonly settings: TypedSettings;
  /** Whether a faulty setting has stopped a message. */
  readonly isFaultShown: boolean;
  /** The id of the next turn. */
  readonly nextId: number;
}

/** A lane whose model is chosen. */
export type ChosenLane = Lane & { readonly model: string };

export interface Conversation extends Kept {
  readonly isRunning: boolean;
  /** Whether the browser refused to keep it for a reload, because it is too large. */
  readonly isTooLarge: boolean;
  readonly store: ConversationStore;
}

const empty: Kept = {
  lanes: [{ turns: [] }],
  draft: "",
  pictures: [],
  settings: noSettings,
  isFaultShown: false,
  nextId: 1,
};

export class ConversationStore {
  isTooLarge = false;
  #kept: Kept;
  /** By the id of the answer. */
  readonly #running = new Map<number, AbortController>();
  readonly #listeners = new Set<() => void>();
  readonly #inTab;

  constructor(userId: string) {
    this.#inTab = keptInTab<Kept>(userId, "chat");
    const before = this.#inTab.read() ?? empty;
    this.#kept = { ...before, lanes: before.lanes.map((lane) => ({ ...lane, turns: lane.turns.map(endedByReload) })) };
    addEventListener("pagehide", this.#write);
    document.addEventListener("visibilitychange", this.#write);
  }

  readonly now = (): Kept => this.#kept;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly keep = (parts: Partial<Omit<Kept, "nextId">>): void => {
    this.#kept = { ...this.#kept, ...parts };
    for (const listener of this.#listeners) listener();
  };

  /** Called at the end of an answer, and before the browser may close the page. */
  readonly #write = (): void => {
    this.isTooLarge = !this.#inTab.write(this.#kept);
    this.keep({});
  };

  readonly setLane = (at: number, change: Partial<Lane>): void => {
    this.keep({ lanes: this.#kept.lanes.map((lane, index) => (index === at ? { ...lane, ...change } : lane)) });
  };

  /** Asks all models the same. */
  readonly send = (chosen: readonly ChosenLane[]): void => {
    const { draft: text, pictures } = this.#kept;
    const id = this.#newId();
    const asking = chosen.map((lane) => ({
      ...lane,
      turns: [...lane.turns, { kind: "question" as const, id, text, pictures }],
    }));
    this.keep({ lanes: asking, draft: "", pictures: [] });
    for (const at of asking.keys()) this.#ask(at, asking[at]!);
  };

  /** Sends the results that were typed for the calls of the last answer. */
  readonly resume = (at: number, lane: ChosenLane): void => {
    const last = lane.turns.at(-1) as AnswerTurn;
    this.#ask(at, { ...lane, turns: [...lane.turns.slice(0, -1), { ...last, isResumed: true }] });
  };

  /** Asks again for the last answer, with the model and the settings as they are now. */
  readonly retry = (at: number, lane: ChosenLane): void => {
    this.#ask(at, { ...lane, turns: lane.turns.slice(0, -1) });
  };

  /** Takes the last question back, to be changed. */
  readonly edit = (): void => {
    const lanes = this.#kept.lanes.map(({ turns, ...lane }) => {
      const last = turns.findLastIndex(({ kind }) => kind === "question");
      return { ...lane, turns: turns.slice(0, last), question: turns[last] };
    });
    const { question } = lanes[0]!;
    if (question?.kind !== "question") return;
    const { text: draft, pictures } = question;
    this.keep({ lanes: lanes.map(({ question: _taken, ...lane }) => lane), draft, pictures });
  };

  /** Puts a second model beside the first one, with the conversation until now. */
  readonly compare = (model: string): void => {
    const [{ turns }] = this.#kept.lanes as [Lane];
    this.keep({ lanes: [this.#kept.lanes[0]!, { model, turns }] });
  };

  readonly endComparison = (): void => {
    this.stop();
    this.keep({ lanes: this.#kept.lanes.slice(0, 1) });
  };

  readonly stop = (): void => {
    for (const controller of this.#running.values()) controller.abort();
  };

  readonly clear = (): void => {
    this.stop();
    this.#running.clear();
    const lanes = this.#kept.lanes.map(({ model, effort }) => ({ model, effort, turns: [] }));
    this.keep({ lanes });
  };

  #newId(): number {
    const { nextId } = this.#kept;
    this.#kept = { ...this.#kept, nextId: nextId + 1 };
    return nextId;
  }

  #ask(at: number, lane: ChosenLane): void {
    const asked = bodyOf(lane, readSettings(this.#kept.settings));
    const answer = newAnswer(this.#newId(), lane.model);
    this.setLane(at, { ...lane, asked, turns: [...lane.turns, answer] });
    const controller = new AbortController();
    this.#running.set(answer.id, controller);
    const change = (more: (before: AnswerTurn) => Partial<AnswerTurn>) => this.#changeAnswer(answer.id, more);
    void follow(asked, controller.signal, change).then(() => this.#ended(answer.id));
  }

  async #ended(id: number): Promise<void> {
    this.#running.delete(id);
    this.#write();
    const answer = this.#kept.lanes.flatMap(({ turns }) => turns).find((turn) => turn.id === id);
    if (answer?.kind !== "answer" || answer.state !== "stopped" || !answer.requestId) return;
    const summary = await costOf(answer.requestId);
    if (summary) this.#changeAnswer(id, () => ({ summary }));
  }

  #changeAnswer(id: number, more: (before: AnswerTurn) => Partial<AnswerTurn>): void {
    const changed = (turn: Turn) => (turn.kind === "answer" && turn.id === id ? { ...turn, ...more(turn) } : turn);
    this.keep({ lanes: this.#kept.lanes.map((lane) => ({ ...lane, turns: lane.turns.map(changed) })) });
  }

  /** What was typed as the result of a call. */
  readonly typeResult = (id: number, call: number, text: string): void => {
    this.#changeAnswer(id, ({ calls, results }) => ({
      results: calls.map((_call, at) => (at === call ? text : (results[at] ?? ""))),
    }));
  };
}

function endedByReload(turn: Turn): Turn {
  return turn.kind === "answer" && isRunning(turn) ? { ...turn, state: "stopped" } : turn;
}

/** By user, because another person may sign in in this tab. */
const stores = new Map<string, ConversationStore>();

export function useConversation(userId: string): Conversation {
  const [store] = useState(() => {
    const found = stores.get(userId) ?? new ConversationStore(userId);
    stores.clear();
    stores.set(userId, found);
    return found;
  });
  const kept = useSyncExternalStore(store.subscribe, store.now);
  // Leaving the page ends the answers. Otherwise they would be billed to their end.
  useEffect(() => store.stop, [store]);
  return {
    ...kept,
    isRunning: kept.lanes.some(({ turns }) => isRunning(turns.at(-1))),
    isTooLarge: store.isTooLarge,
    store,
  };
}
