/** Credits of the package and of the user's own limit, and the account's current request rate. */
import type { Answer } from "../../api/client.ts";
import { ButtonLink } from "../../elements/button.tsx";
import { QuotaBar } from "../../elements/quota-bar.tsx";
import { useTexts } from "../../messages/messages.ts";

export type Credits = Answer<"showCredits">;

interface CardProps {
  readonly credits: Credits;
}

export function CreditsCard({ credits }: CardProps) {
  const { t, format } = useTexts();
  const { quota, used, remaining, forecast, periodStart, periodEnd, asOf } = credits;
  return (
    <section className="card wide" aria-labelledby="quota">
      <h2 id="quota">
        {t.overview.quota} {credits.package && <small>{credits.package}</small>}
      </h2>
      {quota !== null && used !== null ? (
        <>
          <p className="figure number">
            {format.number(used)} <small>/ {format.number(quota)}</small>
            <Remaining value={remaining} />
          </p>
          <QuotaBar label={t.overview.used(format.number(used), format.number(quota))} used={used} limit={quota} />
          <p className="card-foot">
            {periodStart && periodEnd && (
              <span>{t.overview.period(format.date(periodStart), format.lastDay(periodEnd))}</span>
            )}
            {forecast && <span>{t.overview.perDay(format.short(forecast.perDay))}</span>}
            <span>{t.shell.asOf(format.clock(Date.parse(asOf)))}</span>
          </p>
        </>
      ) : (
        <>
          <p>{t.start.packageMissing}</p>
          <div className="actions">
            <ButtonLink to="/package">{t.shell.pages.package}</ButtonLink>
          </div>
        </>
      )}
    </section>
  );
}

export function OwnLimitCard({ credits: { own } }: CardProps) {
  const { t, format } = useTexts();
  if (own.limit === null || own.used === null) return null;
  return (
    <section className="card" aria-labelledby="own">
      <h2 id="own">{t.overview.own}</h2>
      <p className="figure number">
        {format.number(own.used)} <small>/ {format.number(own.limit)}</small>
        <Remaining value={own.remaining} />
      </p>
      <QuotaBar
        label={t.overview.used(format.number(own.used), format.number(own.limit))}
        used={own.used}
        limit={own.limit}
      />
    </section>
  );
}

function Remaining({ value }: { readonly value: string | null }) {
  const { t, format } = useTexts();
  if (value === null) return null;
  const isOver = value.startsWith("-");
  const amount = format.number(value.replace("-", ""));
  return <span className="remaining">{isOver ? t.overview.over(amount) : t.overview.left(amount)}</span>;
}

export function RateCard({ credits: { rate } }: CardProps) {
  const { t, format } = useTexts();
  const value = (count: number, max: number | null) =>
    max === null ? format.number(count) : t.overview.ofMax(format.number(count), format.number(max));
  return (
    <section className="card" aria-labelledby="now">
      <h2 id="now">{t.overview.now}</h2>
      <dl className="facts">
        <dt>{t.overview.lastMinute}</dt>
        <dd className="number">{value(rate.lastMinute, rate.perMinute)}</dd>
        <dt>{t.overview.parallel}</dt>
        <dd className="number">{value(rate.parallel, rate.parallelMax)}</dd>
      </dl>
    </section>
  );
}
