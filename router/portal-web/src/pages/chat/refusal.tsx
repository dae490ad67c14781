/** Why an answer did not come: what to do, and what the API said. */
import type { Problem } from "../../api/problem.ts";
import { useRead } from "../../api/queries.ts";
import { ProblemBox } from "../../elements/problem-box.tsx";
import { UsedUp } from "../../elements/notice/used-up.tsx";
import { useTexts, type Messages } from "../../messages/messages.ts";

/** The advice for the API's codes. */
const advice: Readonly<Record<string, keyof Messages["overview"]["advice"]>> = {
  "400": "correct-request",
  "413": "fewer-large",
  context_length_exceeded: "shorten-request",
  no_package: "order-package",
  "403": "choose-allowed-model",
  rate_limit_exceeded: "slow-down",
  "500": "retry-later",
  engine_died: "retry-later",
  request_barred: "correct-request",
  model_switching: "retry-later",
  overloaded: "retry-later",
  timeout: "shorten-request",
};

export function Refusal({ problem }: { readonly problem: Problem }) {
  const { t } = useTexts();
  const { code, status, message, requestId } = problem;
  if (code === "cut_off") return <p className="field-error">{t.chat.cutOff}</p>;
  if (code === "insufficient_quota") return <NoCredits problem={problem} />;
  const help = advice[code];
  if (!help || message === "") return <ProblemBox problem={problem} />;
  return (
    <div className="problem" role="alert">
      <p>
        {t.overview.advice[help]}
        <small>{t.chat.apiSaid(String(status), code, message)}</small>
        {status >= 500 && requestId && <small>{t.problems.requestId(requestId)}</small>}
      </p>
    </div>
  );
}

/** The refusal itself does not name its end, and whose limit it was. */
function NoCredits({ problem }: { readonly problem: Problem }) {
  const { data } = useRead("showCredits", {});
  const isKnown = data && (data.exhaustedUntil ?? data.own.reachedUntil);
  return isKnown ? <UsedUp credits={data} /> : <ProblemBox problem={problem} />;
}
