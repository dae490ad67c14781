/** The calls of a model, with the results that the person types in place of a program. */
import { Button } from "../../elements/button.tsx";
import { TextArea } from "../../elements/field.tsx";
import { useTexts } from "../../messages/messages.ts";
import type { AnswerTurn } from "./turns.ts";

interface ToolCallsProps {
  readonly answer: AnswerTurn;
  /** Whether results can be typed. */
  readonly mayAnswer: boolean;
  readonly onResult: (call: number, text: string) => void;
  readonly onResume: () => void;
}

export function ToolCalls({ answer: { calls, results, isResumed }, mayAnswer, onResult, onResume }: ToolCallsProps) {
  const { t } = useTexts();
  return (
    <form
      className="calls"
      onSubmit={(event) => {
        event.preventDefault();
        onResume();
      }}
    >
      {calls.map(({ id, name, arguments: given }, at) => (
        <div key={id || at} className="call">
          <p>
            {t.chat.called} <code>{name}</code>
          </p>
          {/* It scrolls sideways. To scroll with the keyboard, it must have the focus. */}
          {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
          <pre tabIndex={0}>{pretty(given)}</pre>
          {mayAnswer && (
            <TextArea
              label={t.chat.result(name)}
              className="code"
              rows={2}
              maxLength={100_000}
              value={results[at] ?? ""}
              onChange={({ target }) => onResult(at, target.value)}
            />
          )}
          {isResumed && (
            <>
              <p>{t.chat.returned}</p>
              {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
              <pre tabIndex={0}>{results[at] ?? ""}</pre>
            </>
          )}
        </div>
      ))}
      {mayAnswer && (
        <div className="actions">
          <Button type="submit" kind="primary">
            {t.chat.sendResults}
          </Button>
        </div>
      )}
    </form>
  );
}

/** Arguments that are still being written are not JSON yet. */
function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), undefined, 2);
  } catch {
    return json;
  }
}
