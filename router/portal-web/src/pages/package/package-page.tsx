/** The page of the package: the current one, and possible changes. */
import { useState } from "react";
import { useRead } from "../../api/queries.ts";
import { Badge } from "../../elements/badge.tsx";
import { Button } from "../../elements/button.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { Page } from "../../elements/page.tsx";
import { QuotaBar } from "../../elements/quota-bar.tsx";
import { useTexts, type Texts } from "../../messages/messages.ts";
import { termsText } from "../../messages/notice-text.ts";
import { useMay } from "../../session/session.ts";
import { InvoiceLines } from "./invoice-lines.tsx";
import { QuoteDialog, type Packages, type PackageWish } from "./quote-dialog.tsx";

export default function PackagePage() {
  const texts = useTexts();
  const { t } = texts;
  const read = useRead("showPackage", {});
  const [wish, setWish] = useState<PackageWish>();
  return (
    <Page title={t.shell.pages.package} lead={read.data && leadOf(read.data, texts)}>
      <Loaded read={read}>
        {(data) => (
          <>
            <Pending data={data} onWish={setWish} />
            <Used data={data} />
            <PackageCards data={data} onWish={setWish} />
            {wish && <QuoteDialog wish={wish} now={data} onClose={() => setWish(undefined)} />}
          </>
        )}
      </Loaded>
      <InvoiceLines />
    </Page>
  );
}

function leadOf({ subscription, packages }: Packages, { t, format }: Texts): string {
  const { leads } = t.packages;
  const { state, package: name, periodEnd } = subscription;
  if (name === null || periodEnd === null) return leads.none;
  const current = packages.find((one) => one.name === name);
  if (state === "trial") {
    const after = current?.coming.findLast(({ at }) => at <= periodEnd) ?? current;
    return leads.trial(name, format.euros(after?.priceCents ?? 0), format.lastDay(periodEnd));
  }
  const price = current?.priceCents ?? 0;
  return leads.active(name, format.euros(price), format.date(periodEnd));
}

interface PartProps {
  readonly data: Packages;
  readonly onWish: (wish: PackageWish) => void;
}

function Pending({ data: { subscription, actions }, onWish }: PartProps) {
  const { t, format } = useTexts();
  const mayChange = useMay()("changePackage");
  const { pending } = subscription;
  if (!pending) return null;
  const texts = t.packages.pending;
  return (
    <div className="note with-action">
      <p>
        {pending.change === "cancellation"
          ? texts.cancellation(format.lastDay(pending.at))
          : texts.downgrade(pending.package ?? t.shell.unknown, format.date(pending.at))}
      </p>
      {mayChange && actions.includes("withdraw") && (
        <Button onClick={() => onWish({ action: "withdraw" })}>{texts.withdraw}</Button>
      )}
    </div>
  );
}

function Used({ data: { quota } }: Pick<PartProps, "data">) {
  const { t, format } = useTexts();
  if (!quota) return null;
  const text = t.packages.used(format.number(quota.used), format.number(quota.credits));
  return (
    <div className="card slim">
      <p className="number">{text}</p>
      <QuotaBar label={text} used={quota.used} limit={quota.credits} isSmall />
    </div>
  );
}

function PackageCards({ data, onWish }: PartProps) {
  const { t, format } = useTexts();
  const mayChange = useMay()("changePackage");
  const texts = t.packages;
  return (
    <section className="cards packages" aria-label={t.shell.pages.package}>
      {data.packages.map((one) => {
        const isCurrent = one.name === data.subscription.package;
        const trialDays = data.actions.includes("trial") ? one.trialDays : null;
        return (
          <article key={one.name} className={isCurrent ? "card current" : "card"}>
            <h2>
              {one.name} {isCurrent && <Badge tone="accent">{texts.current}</Badge>}
            </h2>
            <p className="figure number">
              {format.euros(one.priceCents)} <small>{texts.month}</small>
            </p>
            <ul className="plain">
              <li>{texts.credits(format.short(one.creditsPerMonth))}</li>
              <li>{texts.perMinute(format.number(one.requestsPerMinute))}</li>
              <li>{texts.parallel(format.number(one.parallelRequests))}</li>
              <li>{one.emailSupport ? texts.support : texts.noSupport}</li>
              {trialDays !== null && <li>{texts.freeTrial(format.days(trialDays))}</li>}
            </ul>
            <Coming terms={one} showsTrial={trialDays !== null} />
            <div className="actions">
              {mayChange &&
                one.actions.map((action) => (
                  <Button
                    key={action}
                    kind={action === "downgrade" ? "plain" : "primary"}
                    aria-label={texts.actionFor(texts.actions[action], one.name)}
                    onClick={() => onWish({ action, package: one.name })}
                  >
                    {texts.actions[action]}
                  </Button>
                ))}
              {mayChange && trialDays !== null && (
                <Button kind="primary" onClick={() => onWish({ action: "trial" })}>
                  {texts.actions.trial}
                </Button>
              )}
              {mayChange && isCurrent && data.actions.includes("cancel") && (
                <Button onClick={() => onWish({ action: "cancel" })}>{texts.actions.cancel}</Button>
              )}
            </div>
          </article>
        );
      })}
      {!mayChange && <p className="soft">{texts.ownerOnly}</p>}
    </section>
  );
}

interface ComingProps {
  readonly terms: Packages["packages"][number];
  /** Whether the account can start the free trial. */
  readonly showsTrial: boolean;
}

/** Returns the announced terms that change something for this account. */
function Coming({ terms, showsTrial }: ComingProps) {
  const all = useTexts();
  const { t, format } = all;
  const { coming, freeTrial } = t.packages;
  const textOf = (one: ComingProps["terms"]["coming"][number] | ComingProps["terms"]) =>
    termsText(one, all) + (showsTrial && one.trialDays !== null ? `, ${freeTrial(format.days(one.trialDays))}` : "");
  return terms.coming
    .filter((one, index) => textOf(one) !== textOf(terms.coming[index - 1] ?? terms))
    .map((one) => (
      <p key={one.at} className="soft">
        {coming(format.date(one.at), textOf(one))}
      </p>
    ));
}
