/** Shows the price and time of a package change before the order. The order contains the shown quote. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call, type Answer, type Ask } from "../../api/client.ts";
import type { Problem } from "../../api/problem.ts";
import { useChange } from "../../api/queries.ts";
import { Button } from "../../elements/button.tsx";
import { Dialog } from "../../elements/dialog.tsx";
import { useDone } from "../../elements/form.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { ProblemBox } from "../../elements/problem-box.tsx";
import { useTexts } from "../../messages/messages.ts";

export type PackageWish = Ask<"quotePackage">["body"];
export type Packages = Answer<"showPackage">;
type Quote = Answer<"quotePackage">;

interface QuoteDialogProps {
  readonly wish: PackageWish;
  readonly now: Packages;
  readonly onClose: () => void;
}

export function QuoteDialog({ wish, now, onClose }: QuoteDialogProps) {
  const { t } = useTexts();
  const texts = t.packages.quote;
  const done = useDone(onClose);
  const [round, setRound] = useState(0);
  // Requested once per dialog, so that the quote does not change while it is read.
  const quote = useQuery<Quote, Problem>({
    queryKey: ["quotePackage", wish, round],
    queryFn: () => call("quotePackage", { body: wish }),
    staleTime: Infinity,
    gcTime: 0,
    retry: false,
  });
  const order = useChange("changePackage", "showPackage", "listInvoiceLines", "showCredits", "listModels");
  const hasChanged = order.error?.code === "price_changed";
  const title = texts.titles[wish.action];
  const wished = packageOf(wish, now);
  return (
    <Dialog title={typeof title === "function" ? title(wished?.name ?? "") : title} onClose={onClose}>
      {round > 0 && (
        <p className="note" role="alert">
          {texts.changed}
        </p>
      )}
      <Loaded read={quote}>{(data) => <QuoteFacts quote={data} wish={wish} now={now} />}</Loaded>
      {order.error && !hasChanged && <ProblemBox problem={order.error} />}
      <div className="actions end">
        <Button onClick={onClose}>{t.shell.cancel}</Button>
        {quote.data && (
          <Button
            kind={wish.action === "cancel" ? "danger" : "primary"}
            busy={order.isPending}
            onClick={() =>
              order.mutate(
                { body: { ...wish, quoteId: quote.data.quoteId } },
                {
                  ...done(t.packages.done[wish.action]),
                  onError: ({ code }) => code === "price_changed" && setRound(round + 1),
                },
              )
            }
          >
            <Submit quote={quote.data} />
          </Button>
        )}
      </div>
    </Dialog>
  );
}

function Submit({ quote: { action, dueCents } }: { readonly quote: Quote }) {
  const { t, format } = useTexts();
  const { submit } = t.packages.quote;
  if (action === "trial") return submit.trial;
  if (action === "cancel") return submit.cancel;
  return dueCents > 0 ? submit.paid(format.euros(dueCents)) : submit.free;
}

interface ChangeProps {
  readonly wish: PackageWish;
  readonly now: Packages;
}

interface FactsProps extends ChangeProps {
  readonly quote: Quote;
}

function QuoteFacts({ quote, wish, now }: FactsProps) {
  const { t, format } = useTexts();
  const texts = t.packages.quote;
  const { dueCents, charges, thenCents, withdraws, after } = quote;
  const isLater = wish.action === "downgrade" || wish.action === "cancel";
  const at = after.pending?.at ?? after.periodEnd;
  return (
    <>
      <dl className="facts quote">
        <dt>{texts.when}</dt>
        <dd>
          {!isLater || !at
            ? texts.atOnce
            : wish.action === "cancel"
              ? texts.atEndOf(format.lastDay(at))
              : texts.at(format.date(at))}
        </dd>
        <QuotaFact quote={quote} wish={wish} now={now} />
        {charges.map((line) => (
          <div className="fact-line" key={line.periodStart}>
            <dt>
              {texts.line(line.package, format.number(line.days), format.number(line.periodDays))}
              {line.reason === "upgrade" && <Difference wish={wish} now={now} />}
            </dt>
            <dd className="number">{format.euros(line.amountCents)}</dd>
          </div>
        ))}
        <div className="fact-line strong">
          <dt>{texts.due}</dt>
          <dd className="number">{dueCents > 0 ? format.euros(dueCents) : texts.nothingDue}</dd>
        </div>
        {thenCents !== null && (
          <>
            <dt>{texts.then}</dt>
            <dd className="number">{format.euros(thenCents)}</dd>
          </>
        )}
      </dl>
      {wish.action === "trial" && after.package !== null && after.periodEnd !== null && (
        <p>{texts.trialNote(format.lastDay(after.periodEnd), after.package, format.euros(thenCents ?? 0))}</p>
      )}
      {wish.action === "cancel" && at && <p>{texts.cancelNote(format.lastDay(at))}</p>}
      {wish.action === "downgrade" && <DowngradeNote wish={wish} now={now} />}
      {withdraws && wish.action !== "withdraw" && <p>{texts.withdraws}</p>}
    </>
  );
}

/** Returns the package after the change. */
function packageOf({ action, package: name }: PackageWish, { packages }: Packages) {
  return packages.find((one) => (action === "trial" ? one.trialDays !== null : one.name === name));
}

/** Shows both packages' monthly prices and their difference, of which the remaining days are charged. */
function Difference({ wish, now: { subscription, packages } }: ChangeProps) {
  const { t, format } = useTexts();
  const price = (wanted: string | null | undefined) => packages.find(({ name }) => name === wanted)?.priceCents;
  const [before, after] = [price(subscription.package), price(wish.package)];
  if (before === undefined || after === undefined) return null;
  return (
    <small className="reason">
      {t.packages.quote.difference(format.euros(after), format.euros(before), format.euros(after - before))}
    </small>
  );
}

function QuotaFact({ quote, wish, now }: FactsProps) {
  const { t, format } = useTexts();
  const texts = t.packages.quote;
  const { quota, subscription } = now;
  const next = packageOf(wish, now);
  if (!next || wish.action === "downgrade") return null;
  const [before, after] = [format.number(quota?.credits ?? 0), format.number(next.creditsPerMonth)];
  return (
    <>
      <dt>{texts.quota}</dt>
      <dd className="number">
        {!quota
          ? texts.quotaNew(after)
          : // An upgrade out of the trial begins a period of its own.
            quote.after.periodStart !== subscription.periodStart
            ? texts.quotaAnew(before, after)
            : texts.quotaChange(before, after, format.number(quota.used))}
      </dd>
    </>
  );
}

function DowngradeNote({ wish, now: { quota, packages } }: ChangeProps) {
  const { t, format } = useTexts();
  const next = packages.find(({ name }) => name === wish.package);
  if (!next || !quota) return null;
  return <p>{t.packages.quote.downgradeNote(format.number(next.creditsPerMonth), format.number(quota.used))}</p>;
}
