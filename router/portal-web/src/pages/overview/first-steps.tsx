/** The first steps of a person, with one button for the next one. They go away for good once they are done or hidden. */
import { useChange } from "../../api/queries.ts";
import { Button, ButtonLink } from "../../elements/button.tsx";
import { Icon } from "../../elements/icons.tsx";
import { useTexts } from "../../messages/messages.ts";
import { useMay } from "../../session/session.ts";
import type { Credits } from "./overview-lead.ts";

const paths = { package: "/package", key: "/start", call: "/start", colleagues: "/users" } as const;
const order = ["package", "key", "call", "colleagues"] as const;

export function FirstSteps({ steps }: { readonly steps: NonNullable<Credits["checklist"]> }) {
  const { t } = useTexts();
  const texts = t.overview.steps;
  const mayOrder = useMay()("changePackage");
  const hide = useChange("updateProfile", "showCredits");
  const shown = order.filter((step) => steps[step] !== null);
  const next = shown.find((step) => !steps[step])!;
  const isOfOwner = next === "package" && !mayOrder;
  return (
    <section className="card hero" aria-labelledby="steps">
      <div>
        <h2 id="steps">{next === "package" ? texts.welcome : texts.title}</h2>
        <p className="soft">{isOfOwner ? texts.askOwner : texts.leads[next]}</p>
        <ol className="ticks">
          {shown.map((step) => (
            <li
              key={step}
              className={steps[step] ? "done" : undefined}
              aria-current={step === next ? "step" : undefined}
            >
              <span className="step-mark" aria-hidden="true">
                {steps[step] && <Icon name="check" />}
              </span>
              {texts.names[step]}
              {steps[step] && <span className="hidden">{texts.done}</span>}
            </li>
          ))}
        </ol>
      </div>
      <div className="actions">
        <Button kind="quiet" busy={hide.isPending} onClick={() => hide.mutate({ body: { checklistHidden: true } })}>
          {texts.hide}
        </Button>
        {!isOfOwner && (
          <ButtonLink to={paths[next]} kind="primary">
            {texts.actions[next]}
          </ButtonLink>
        )}
      </div>
    </section>
  );
}

/** For who has seen the first steps, and whose package has ended. */
export function NoPackage() {
  const { t } = useTexts();
  const mayOrder = useMay()("changePackage");
  return (
    <section className="card hero" aria-labelledby="no-package">
      <div>
        <h2 id="no-package">{t.overview.noPackage}</h2>
        <p className="soft">{mayOrder ? t.overview.steps.leads.package : t.overview.steps.askOwner}</p>
      </div>
      {mayOrder && (
        <ButtonLink to="/package" kind="primary">
          {t.overview.steps.actions.package}
        </ButtonLink>
      )}
    </section>
  );
}
