/** The first-call page: package, key, call. The last step is checked when the answer arrives. */
import { useState, type ReactNode } from "react";
import { useRead } from "../../api/queries.ts";
import { Button, ButtonLink } from "../../elements/button.tsx";
import { Icon } from "../../elements/icons.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { Page } from "../../elements/page.tsx";
import { exampleModel } from "../../elements/snippet/example-model.ts";
import { Snippet } from "../../elements/snippet/snippet.tsx";
import { keyVariable } from "../../elements/snippet/snippet-code.ts";
import { useTexts } from "../../messages/messages.ts";
import { useSession } from "../../session/session.ts";
import { addDays, germanDay } from "../../time/german-day.ts";
import { CreateKey } from "../keys/key-dialogs.tsx";
import { usedByPrograms, usedSince, type Used } from "./first-call.ts";

const refreshMs = 2_000;
const calledBeforeDays = 90;

export default function StartPage() {
  const { t } = useTexts();
  const { user, apiUrl } = useSession();
  const [isCreating, setCreating] = useState(false);
  const keys = useRead("listKeys", { query: { userId: user.id, state: "active", sort: "created", order: "desc" } });
  const models = useRead("listModels", {});
  // Beyond the billing period: a first call is made once.
  const [from] = useState(() => addDays(germanDay(Date.now()), -calledBeforeDays));
  const usage = useRead("showUsage", { query: { by: "key", userId: user.id, from } }, { refreshMs });
  const now = usage.data && usedByPrograms(usage.data.items);
  const [before, setBefore] = useState(now);
  if (now && !before) setBefore(now);
  const isDone = now !== undefined && now.totalTokens > 0;
  return (
    <Page title={t.shell.pages.start} lead={isDone ? t.start.leadDone : t.start.lead}>
      <Loaded read={models}>
        {({ items }) => {
          const hasPackage = !items.some(({ unusable }) => unusable === "no-package");
          const key = keys.data?.items[0];
          const model = exampleModel(items, key?.usableModels ?? null);
          return (
            <ol className="steps">
              <Step title={t.start.package} isDone={hasPackage}>
                <p>{hasPackage ? t.start.packageDone : t.start.packageMissing}</p>
                {!hasPackage && <ButtonLink to="/package">{t.shell.pages.package}</ButtonLink>}
              </Step>
              <Step title={t.start.key} isDone={key !== undefined}>
                <p>{key ? t.start.keyDone(key.name) : t.start.keyMissing}</p>
                {keys.data && !key && (
                  <Button kind="primary" onClick={() => setCreating(true)}>
                    <Icon name="plus" />
                    {t.keys.create}
                  </Button>
                )}
              </Step>
              <Step title={t.start.call} isDone={isDone}>
                {model ? (
                  <>
                    <p>{t.start.callLead}</p>
                    <pre className="line">{`export ${keyVariable}=sk-weiche-…`}</pre>
                    <Snippet apiUrl={apiUrl} model={model} />
                  </>
                ) : (
                  t.start.noModel
                )}
              </Step>
              <Step title={t.start.answer} isDone={isDone}>
                <AnswerStep before={before} now={now} />
              </Step>
            </ol>
          );
        }}
      </Loaded>
      {isCreating && <CreateKey onClose={() => setCreating(false)} />}
    </Page>
  );
}

interface AnswerProps {
  /** Used by the person's keys when the page was opened. Undefined until it is known. */
  readonly before: Used | undefined;
  readonly now: Used | undefined;
}

/** Shows what was called since the page was opened. */
function AnswerStep({ before, now }: AnswerProps) {
  const { t, format } = useTexts();
  if (!before || !now || now.totalTokens === 0)
    return (
      <output className="waiting">
        <span className="pulse" aria-hidden="true" />
        {t.start.waiting}
      </output>
    );
  const since = usedSince(before, now);
  return (
    <>
      <output>
        {since.totalTokens > 0
          ? t.start.answered(format.number(since.totalTokens), format.number(since.credits))
          : t.start.answeredBefore}
      </output>
      <ButtonLink to="/">{t.shell.pages.overview}</ButtonLink>
    </>
  );
}

interface StepProps {
  readonly title: string;
  readonly isDone: boolean;
  readonly children: ReactNode;
}

function Step({ title, isDone, children }: StepProps) {
  return (
    <li className={isDone ? "step done" : "step"}>
      <span className="step-mark" aria-hidden="true">
        {isDone && <Icon name="check" />}
      </span>
      <div className="step-body">
        <h2>{title}</h2>
        {children}
      </div>
    </li>
  );
}
