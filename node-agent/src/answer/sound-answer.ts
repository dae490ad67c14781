/**
 * Makes the texts of an answer valid, so that every client can read the answer and send it back. U+FFFD replaces NUL
 * and each unpaired surrogate. A pair that is split between two pieces comes out whole.
 */
import type { AnswerSink } from "./canonical-stream.ts";

const replacement = "\ufffd";

export function soundText(text: string): string {
  return text.isWellFormed() && !text.includes("\0") ? text : text.toWellFormed().replaceAll("\0", replacement);
}

/** The first half of a surrogate pair, which waits for the next piece of the same part of the answer. */
interface HeldHalf {
  /** The part of the answer: reasoning, content, or the arguments of a call. */
  readonly part: string;
  readonly half: string;
  readonly send: (text: string) => void;
}

export function soundAnswer(sink: AnswerSink, choices: number): AnswerSink {
  const held = Array.from({ length: choices }, (): HeldHalf | undefined => undefined);
  const release = (choice: number) => {
    const half = held[choice];
    held[choice] = undefined;
    half?.send(replacement);
  };
  /** Returns the text without a half at its end. `send`: sends a half that remains unpaired. */
  const take = (choice: number, part: string, text: string, send: (text: string) => void): string => {
    if (held[choice] && held[choice].part !== part) release(choice);
    if (text === "") return "";
    const whole = (held[choice]?.half ?? "") + text;
    const isCut = isFirstHalf(whole.charCodeAt(whole.length - 1));
    held[choice] = isCut ? { part, half: whole.slice(-1), send } : undefined;
    return soundText(isCut ? whole.slice(0, -1) : whole);
  };
  const texts = (part: "reasoning" | "content"): AnswerSink["content"] => {
    return (choice, text, logprobs) => {
      const sound = take(choice, part, text, (alone) => sink[part](choice, alone, undefined));
      if (sound !== "" || text === "" || logprobs) sink[part](choice, sound, logprobs);
    };
  };
  return {
    role: (choice) => sink.role(choice),
    reasoning: texts("reasoning"),
    content: texts("content"),
    toolCall(choice, { index, opening, arguments: json }, logprobs) {
      const alone = (text: string) => sink.toolCall(choice, { index, arguments: text }, undefined);
      const sound = take(choice, `call ${index}`, json, alone);
      const opened = opening && { id: soundText(opening.id), name: soundText(opening.name) };
      if (sound !== "" || json === "" || opened || logprobs)
        sink.toolCall(choice, { index, ...(opened && { opening: opened }), arguments: sound }, logprobs);
    },
    finish(choice, reason) {
      release(choice);
      sink.finish(choice, reason);
    },
  };
}

function isFirstHalf(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
