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
import { CreateKey } from "../keys/key-dialogs.tsx";

const refreshMs = 2_000;

export default function StartPage() {
  const { t } = useTexts();
  const { user, apiUrl } = useSession();
  const [isCreating, setCreating] = useState(false);
  const keys = useRead("listKeys", { query: { userId: user.id, state: "active", sort: "created", order: "desc" } });
  const models = useRead("listModels", {});
  const usage = useRead("showUsage", { query: { by: "key", userId: user.id } }, { refreshMs });
  const calls = usage.data?.items.filter(({ key }) => key?.kind === "api") ?? [];
  const isDone = calls.length > 0;
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
                <AnswerStep calls={calls} />
              </Step>
            </ol>
          );
        }}
      </Loaded>
      {isCreating && <CreateKey onClose={() => setCreating(false)} />}
    </Page>
  );
}

interface Call {
  readonly totalTokens: number;
  readonly credits: string;
}

function AnswerStep({ calls }: { readonly calls: readonly Call[] }) {
  const { t, format } = useTexts();
  if (calls.length === 0)
    return (
      <output className="waiting">
        <span className="pulse" aria-hidden="true" />
        {t.start.waiting}
      </output>
    );
  const tokens = calls.reduce((sum, { totalTokens }) => sum + totalTokens, 0);
  const credits = calls.reduce((sum, call) => sum + Number(call.credits), 0);
  return (
    <>
      <output>{t.start.answered(format.number(tokens), format.number(credits))}</output>
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
