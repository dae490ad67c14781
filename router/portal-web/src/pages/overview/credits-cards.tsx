/** Credits of the package, what comes at its end, and the user's own limit. */
import { Link } from "wouter";
import { Badge } from "../../elements/badge.tsx";
import { QuotaBar } from "../../elements/quota-bar.tsx";
import { UsedUp } from "../../elements/notice/used-up.tsx";
import { useTexts } from "../../messages/messages.ts";
import { useMay } from "../../session/session.ts";
import { pendingText, type Credits } from "./overview-lead.ts";

interface CardProps {
  readonly credits: Credits;
}

export function CreditsCard({ credits }: CardProps) {
  const texts = useTexts();
  const { t, format } = texts;
  const mayOrder = useMay()("changePackage");
  const { quota, used, remaining, forecast, periodStart, periodEnd, asOf } = credits;
  if (quota === null || used === null) return null;
  const pending = pendingText(credits, texts);
  return (
    <section className="card wide" aria-labelledby="quota">
      <h2 id="quota">
        {t.overview.quota} {credits.package && <small>{credits.package}</small>}
      </h2>
      {pending && (
        <p className="pending">
          <Badge tone="warn">{t.overview.pending}</Badge> <span>{pending}</span>{" "}
          <Link to="/package">{mayOrder ? t.overview.change : t.shell.pages.package}</Link>
        </p>
      )}
      <UsedUp credits={credits} />
      <p className="figure number">
        {format.number(used)} <small>/ {format.number(quota)}</small>
        <Remaining value={remaining} />
      </p>
      <QuotaBar
        label={t.overview.used(format.number(used), format.number(quota))}
        used={used}
        limit={quota}
        expected={forecast?.atEnd}
      />
      <p className="card-foot">
        {periodStart && periodEnd && (
          <span>{t.overview.period(format.date(periodStart), format.lastDay(periodEnd))}</span>
        )}
        {forecast && (
          <span>
            <i className="key expected" aria-hidden="true" />
            {t.overview.expected(format.short(forecast.atEnd), format.short(forecast.perDay))}
          </span>
        )}
        <span>{t.shell.asOf(format.clock(Date.parse(asOf)))}</span>
      </p>
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
