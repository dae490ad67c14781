/** Shows a refusal or failure, with advice. */
import type { Problem } from "../api/problem.ts";
import { problemText } from "../messages/problem-text.ts";
import { useTexts } from "../messages/messages.ts";
import { Button } from "./button.tsx";

export function ProblemBox({ problem, onRetry }: { readonly problem: Problem; readonly onRetry?: () => unknown }) {
  const texts = useTexts();
  const isOurs = problem.status === 0 || problem.status >= 500;
  return (
    <div className="problem" role="alert">
      <p>
        {problemText(problem, texts)}
        {isOurs && problem.requestId && <small>{texts.t.problems.requestId(problem.requestId)}</small>}
      </p>
      {onRetry && <Button onClick={onRetry}>{texts.t.shell.retry}</Button>}
    </div>
  );
}
