/** The overview page: the state of credits, limits and keys. */
import { useRead } from "../../api/queries.ts";
import { Loaded } from "../../elements/loaded.tsx";
import { Page } from "../../elements/page.tsx";
import { useTexts } from "../../messages/messages.ts";
import { CreditsCard, OwnLimitCard } from "./credits-cards.tsx";
import { DaysCard } from "./days-card.tsx";
import { FirstSteps, NoPackage } from "./first-steps.tsx";
import { NoticesCard } from "./notices-card.tsx";
import { overviewLead, type Credits } from "./overview-lead.ts";
import { RateCard } from "./rate-card.tsx";
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
  const { checklist, package: name, hasCalled, rate } = credits;
  const hasPackage = name !== null;
  return (
    <>
      {checklist ? <FirstSteps steps={checklist} /> : !hasPackage && <NoPackage />}
      {hasPackage && (
        <div className="cards">
          {credits.own.limit !== null && <OwnLimitCard credits={credits} />}
          <CreditsCard credits={credits} />
          <RateCard rate={rate} />
        </div>
      )}
      {hasCalled && <DaysCard />}
      <div className="cards even">
        <NoticesCard />
        {(hasPackage || hasCalled) && <RefusalsCard />}
      </div>
    </>
  );
}
