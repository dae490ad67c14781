/** One message of a conversation, as text, so that a model's output never becomes markup. */
import type { Problem } from "../../api/problem.ts";
import { useRead } from "../../api/queries.ts";
import { ProblemBox } from "../../elements/problem-box.tsx";
import { UsedUp } from "../../elements/notice/used-up.tsx";
import { useTexts } from "../../messages/messages.ts";
import type { ChatSummary } from "./chat-events.ts";
import type { Turn } from "./conversation.ts";

export function TurnView({ turn }: { readonly turn: Turn }) {
  const { t } = useTexts();
  const { model, role, content, reasoning, state, summary, problem } = turn;
  return (
    <li className={`turn ${role}`}>
      <h2>{role === "user" ? t.chat.you : model}</h2>
      {reasoning && (
        <details open={content === ""}>
          <summary>{t.chat.thoughts}</summary>
          <p className="said">{reasoning}</p>
        </details>
      )}
      {content && <p className="said">{content}</p>}
      {(state === "waiting" || state === "activating") && <Waiting turn={turn} model={model} />}
      {state === "stopped" && <p className="soft">{t.chat.stopped}</p>}
      {problem?.code === "cut_off" && <p className="field-error">{t.chat.cutOff}</p>}
      {problem?.code === "insufficient_quota" && <NoCredits problem={problem} />}
      {problem && !["cut_off", "insufficient_quota"].includes(problem.code) && <ProblemBox problem={problem} />}
      {summary && <Summary summary={summary} />}
    </li>
  );
}

/** The refusal itself does not name its end, and whose limit it was. */
function NoCredits({ problem }: { readonly problem: Problem }) {
  const { data } = useRead("showCredits", {});
  const isKnown = data && (data.exhaustedUntil ?? data.own.reachedUntil);
  return isKnown ? <UsedUp credits={data} /> : <ProblemBox problem={problem} />;
}

function Waiting({ turn, model }: { readonly turn: Turn; readonly model: string }) {
  const { t, format } = useTexts();
  const seconds = (ms: number) => format.number(Math.max(1, Math.round(ms / 1_000)));
  const { state, usualMs, standing } = turn;
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
