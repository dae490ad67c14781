/** The turns of one conversation. */
import { useEffect, useRef } from "react";
import { Button } from "../../elements/button.tsx";
import { useTexts } from "../../messages/messages.ts";
import { AnswerView } from "./answer-view.tsx";
import type { ConversationStore } from "./conversation.ts";
import { Thumbnail } from "./pictures.tsx";
import type { Lane, Question } from "./turns.ts";

interface LaneTurnsProps {
  readonly at: number;
  readonly lane: Lane & { readonly model: string };
  readonly store: ConversationStore;
  readonly isRunning: boolean;
}

export function LaneTurns({ at, lane, store, isRunning }: LaneTurnsProps) {
  const { t } = useTexts();
  const { turns } = lane;
  const end = useRef<HTMLDivElement>(null);
  const lastQuestion = turns.findLast(({ kind }) => kind === "question");
  useEffect(() => {
    if (at === 0 && turns.length > 0) end.current?.scrollIntoView({ block: "end" });
  }, [at, turns]);
  return (
    <>
      <ol className="turns" aria-label={t.chat.turns} aria-live="polite" aria-busy={isRunning}>
        {turns.map((turn) => (
          <li key={turn.id} className={turn.kind === "question" ? "turn user" : "turn assistant"}>
            {turn.kind === "question" ? (
              <QuestionView
                question={turn}
                onEdit={at === 0 && turn === lastQuestion && !isRunning ? store.edit : undefined}
              />
            ) : (
              <AnswerView
                answer={turn}
                isLast={turn === turns.at(-1) && !isRunning}
                onRetry={() => store.retry(at, lane)}
                onResume={() => store.resume(at, lane)}
                onResult={(call, text) => store.typeResult(turn.id, call, text)}
              />
            )}
          </li>
        ))}
      </ol>
      <div ref={end} className="turns-end" />
    </>
  );
}

function QuestionView({
  question,
  onEdit,
}: {
  readonly question: Question;
  readonly onEdit?: (() => void) | undefined;
}) {
  const { t } = useTexts();
  const { text, pictures } = question;
  return (
    <>
      <h2>{t.chat.you}</h2>
      {text && <p className="said">{text}</p>}
      {pictures.length > 0 && (
        <ul className="pictures" aria-label={t.chat.attached}>
          {pictures.map(({ name, url }) => (
            <li key={url}>
              <Thumbnail url={url} />
              <span>{name}</span>
            </li>
          ))}
        </ul>
      )}
      {onEdit && (
        <div className="actions turn-actions">
          <Button kind="quiet" onClick={onEdit}>
            {t.chat.edit}
          </Button>
        </div>
      )}
    </>
  );
}
