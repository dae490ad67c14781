/** One message of a conversation, as text: nothing that a model says becomes part of the page. */
import { ProblemBox } from "../../elements/problem-box.tsx";
import { useTexts } from "../../messages/messages.ts";
import type { ChatSummary } from "./chat-events.ts";
import type { Turn } from "./conversation.ts";

export function TurnView({ turn, model }: { readonly turn: Turn; readonly model: string }) {
  const { t, format } = useTexts();
  const { role, content, reasoning, state, usualMs, summary, problem } = turn;
  const seconds = (ms: number) => format.number(Math.max(1, Math.round(ms / 1_000)));
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
      {state === "waiting" && <Waiting text={t.chat.waiting} />}
      {state === "activating" && (
        <Waiting text={usualMs === undefined ? t.chat.activating : t.chat.activatingAsLately(seconds(usualMs))} />
      )}
      {state === "stopped" && <p className="soft">{t.chat.stopped}</p>}
      {problem?.code === "cut_off" && <p className="field-error">{t.chat.cutOff}</p>}
      {problem && problem.code !== "cut_off" && <ProblemBox problem={problem} />}
      {summary && <Summary summary={summary} />}
    </li>
  );
}

function Waiting({ text }: { readonly text: string }) {
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
