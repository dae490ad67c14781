/** One answer of a model: reasoning, text, tool calls, how it ended, and its cost. */
import { lazy, Suspense, useId } from "react";
import { Button } from "../../elements/button.tsx";
import { CopyButton } from "../../elements/copy-button.tsx";
import { useTexts } from "../../messages/messages.ts";
import type { ChatSummary } from "./chat-events.ts";
import { Refusal } from "./refusal.tsx";
import { ToolCalls } from "./tool-calls.tsx";
import { isCalling, isRunning, type AnswerTurn } from "./turns.ts";

/** Loaded with the first answer, because the page itself needs no Markdown. */
const Markdown = lazy(() => import("./markdown.tsx"));

interface AnswerViewProps {
  readonly answer: AnswerTurn;
  /** Whether it can be asked for again. */
  readonly isLast: boolean;
  readonly onRetry: () => void;
  readonly onResume: () => void;
  readonly onResult: (call: number, text: string) => void;
}

export function AnswerView({ answer, isLast, onRetry, onResume, onResult }: AnswerViewProps) {
  const { t } = useTexts();
  const id = useId();
  const { model, content, reasoning, calls, state, finish, summary, problem } = answer;
  return (
    <>
      <h2>{model}</h2>
      {reasoning && (
        <details open={content === "" && isRunning(answer)}>
          <summary>{t.chat.thoughts}</summary>
          <p className="said">{reasoning}</p>
        </details>
      )}
      {content && (
        <div id={id}>
          <Suspense fallback={<p className="said">{content}</p>}>
            <Markdown text={content} />
          </Suspense>
        </div>
      )}
      {calls.length > 0 && (
        <ToolCalls answer={answer} mayAnswer={isLast && isCalling(answer)} onResult={onResult} onResume={onResume} />
      )}
      {(state === "waiting" || state === "activating") && <Waiting answer={answer} />}
      {state === "stopped" && <p className="soft">{t.chat.stopped}</p>}
      {finish === "length" && <p className="soft">{t.chat.cutByLimit}</p>}
      {problem && <Refusal problem={problem} />}
      {summary && <Summary summary={summary} />}
      {!isRunning(answer) && (
        <div className="actions turn-actions">
          {content && <CopyButton text={content} shownIn={id} kind="quiet" />}
          {isLast && (
            <Button kind="quiet" onClick={onRetry}>
              {t.shell.retry}
            </Button>
          )}
        </div>
      )}
    </>
  );
}

function Waiting({ answer }: { readonly answer: AnswerTurn }) {
  const { t, format } = useTexts();
  const seconds = (ms: number) => format.number(Math.max(1, Math.round(ms / 1_000)));
  const { model, state, usualMs, standing } = answer;
  let text = t.chat.waiting;
  if (standing) {
    const time = format.duration(Math.max(1, Math.round(standing.estimateMs / 1_000)));
    text = t.chat.inLine(model, format.number(standing.position), time);
  } else if (state === "activating")
    text = usualMs === undefined ? t.chat.activating : t.chat.activatingAsLately(seconds(usualMs));
  return (
    <p className="waiting">
      <span className="pulse" aria-hidden="true" />
      {text}
    </p>
  );
}

function Summary({ summary }: { readonly summary: ChatSummary }) {
  const { t, format } = useTexts();
  const { promptTokens, completionTokens, credits, firstTokenMs, tokensPerSecond } = summary;
  const parts = [
    promptTokens !== null &&
      completionTokens !== null &&
      t.chat.tokens(format.number(promptTokens), format.number(completionTokens)),
    credits !== null && t.chat.credits(format.number(credits)),
    firstTokenMs !== null && t.chat.first(format.number((firstTokenMs / 1000).toFixed(2))),
    tokensPerSecond !== null && t.chat.speed(format.number(tokensPerSecond)),
  ].filter(Boolean);
  return <p className="summary number">{parts.join(" · ")}</p>;
}
