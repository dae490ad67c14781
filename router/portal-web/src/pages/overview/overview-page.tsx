/** The overview page: the state of credits, limits and keys. */
import { useRead } from "../../api/queries.ts";
import { ButtonLink } from "../../elements/button.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { Page } from "../../elements/page.tsx";
import { useTexts } from "../../messages/messages.ts";
import { useSession } from "../../session/session.ts";
import { CreditsCard, OwnLimitCard, RateCard, type Credits } from "./credits-cards.tsx";
import { NoticesCard } from "./notices-card.tsx";
import { overviewLead } from "./overview-lead.ts";
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
  const { role } = useSession().user;
  const hasOwnLimit = credits.own.limit !== null;
  // Owners and Admins may leave the calls to others.
  const hasCalled = role === "member" ? credits.own.hasCalled : credits.hasCalled;
  return (
    <>
      {!hasCalled && credits.package !== null && (
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
