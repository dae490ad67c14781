/** The overview page: the state of credits, limits and keys. */
import { useRead } from "../../api/queries.ts";
import { ButtonLink } from "../../elements/button.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { Page } from "../../elements/page.tsx";
import { useTexts, type Texts } from "../../messages/messages.ts";
import { CreditsCard, OwnLimitCard, RateCard, type Credits } from "./credits-cards.tsx";
import { NoticesCard } from "./notices-card.tsx";
import { RefusalsCard } from "./refusals-card.tsx";

const refreshMs = 15_000;

export default function OverviewPage() {
  const texts = useTexts();
  const { t } = texts;
  const read = useRead("showCredits", {}, { refreshMs });
  return (
    <Page title={t.shell.pages.overview} lead={read.data && overviewLead(read.data, texts)}>
      <Loaded read={read}>{(credits) => <Overview credits={credits} />}</Loaded>
    </Page>
  );
}

function Overview({ credits }: { readonly credits: Credits }) {
  const { t } = useTexts();
  const hasOwnLimit = credits.own.limit !== null;
  return (
    <>
      {Number(credits.own.used ?? 0) === 0 && credits.package !== null && (
        <section className="card hero">
          <div>
            <h2>{t.overview.first}</h2>
            <p className="soft">{t.overview.firstLead}</p>
          </div>
          <ButtonLink to="/start" kind="primary">
            {t.overview.firstAction}
          </ButtonLink>
        </section>
      )}
      <div className="cards">
        {hasOwnLimit && <OwnLimitCard credits={credits} />}
        <CreditsCard credits={credits} />
        <RateCard credits={credits} />
      </div>
      <div className="cards even">
        <NoticesCard />
        <RefusalsCard />
      </div>
    </>
  );
}

/** The sentence about the state of the account or the user's own limit. */
function overviewLead(credits: Credits, { t, format }: Texts): string {
  const { leads } = t.overview;
  const { periodEnd, forecast, exhaustedUntil, own } = credits;
  if (credits.package === null || periodEnd === null) return leads.noPackage;
  if (exhaustedUntil) return leads.exhausted(format.dateTime(exhaustedUntil));
  if (own.reachedUntil) return leads.ownExhausted(format.dateTime(own.reachedUntil));
  if (!forecast) return leads.unknown(format.date(periodEnd));
  if (forecast.until === null) return leads.fine(format.date(periodEnd));
  return leads.short(format.dateTime(forecast.until), format.date(periodEnd));
}
