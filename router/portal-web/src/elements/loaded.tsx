/**
 * Shows loaded data. During the first load it shows a placeholder, after a moment. If a reload fails, the old data stays
 * with its time.
 */
import type { ReactNode } from "react";
import { problemText } from "../messages/problem-text.ts";
import { useTexts } from "../messages/messages.ts";
import type { Read } from "../api/hooks.ts";
import { Button } from "./button.tsx";
import { ProblemBox } from "./problem-box.tsx";

interface LoadedProps<T> {
  readonly read: Read<T>;
  readonly children: (data: T) => ReactNode;
}

export function Loaded<T>({ read, children }: LoadedProps<T>) {
  const texts = useTexts();
  const { data, error } = read;
  if (data === undefined) return error ? <ProblemBox problem={error} onRetry={() => read.refetch()} /> : <Skeleton />;
  return (
    <>
      {error && (
        <div className="problem" role="alert">
          <p>
            {problemText(error, texts)} {texts.t.problems.staleSince(texts.format.clock(read.dataUpdatedAt))}
            {error.requestId && <small>{texts.t.problems.requestId(error.requestId)}</small>}
          </p>
          <Button onClick={() => read.refetch()}>{texts.t.shell.retry}</Button>
        </div>
      )}
      {read.isPlaceholderData && <output className="reloading">{texts.t.shell.loading}</output>}
      {children(data)}
    </>
  );
}

export function Skeleton() {
  const { t } = useTexts();
  return (
    <output className="skeleton">
      <span className="hidden">{t.shell.loading}</span>
      <i /> <i /> <i />
    </output>
  );
}
