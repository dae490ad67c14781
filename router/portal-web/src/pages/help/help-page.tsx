/** The help page: how to call the API, and what to do about errors. */
import { Link } from "wouter";
import type { Answer } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import { CopyButton } from "../../elements/copy-button.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { Page } from "../../elements/page.tsx";
import { useHelp } from "../../messages/help.ts";
import { useTexts } from "../../messages/messages.ts";
import { useSession } from "../../session/session.ts";
import { ClientsCard } from "./clients-card.tsx";
import { RefusalTable } from "./refusal-table.tsx";
import { RuleList } from "./rule-list.tsx";
import { SchemasSection } from "./schemas-section.tsx";

type Service = Answer<"showService">;

export default function HelpPage() {
  const { t } = useTexts();
  const help = useHelp();
  const service = useRead("showService", {});
  return (
    <Page title={t.shell.pages.help} lead={help.lead}>
      <AddressCard />
      <ClientsCard />
      <Loaded read={service}>
        {({ refusals, limits }) => (
          <>
            <section className="stack" aria-labelledby="errors">
              <h2 id="errors">{help.errors.title}</h2>
              <p className="prose">{help.errors.lead}</p>
              <RefusalTable refusals={refusals} />
            </section>
            {(["retries", "streaming", "costs"] as const).map((name) => (
              <section key={name} className="card stack" aria-labelledby={name}>
                <h2 id={name}>{help[name].title}</h2>
                <RuleList rules={help[name].rules} />
              </section>
            ))}
            <LimitsCard limits={limits} />
            <SchemasSection />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function AddressCard() {
  const help = useHelp();
  const { apiUrl } = useSession();
  const address = `${apiUrl.replace(/\/$/, "")}/v1`;
  return (
    <section className="card stack" aria-labelledby="address">
      <h2 id="address">{help.address.title}</h2>
      <div className="secret">
        <code id="address-text">{address}</code>
        <CopyButton text={address} shownIn="address-text" />
      </div>
      <p className="prose">{help.address.lead}</p>
      <p>
        <a href="/openapi.json">{help.address.description}</a>
      </p>
      <p>
        <Link to="/help/api">{help.reference.link}</Link>
      </p>
    </section>
  );
}

function LimitsCard({ limits }: { readonly limits: Service["limits"] }) {
  const { t, format } = useTexts();
  const help = useHelp();
  const texts = help.limits;
  const {
    requestsPerSecond,
    requestBurst,
    bodyBytes,
    requestSeconds,
    activeKeysPerUser,
    usersPerAccount,
    changesAtOnce,
  } = limits;
  return (
    <section className="card stack" aria-labelledby="limits">
      <h2 id="limits">{texts.title}</h2>
      <ul className="prose bullets">
        {requestsPerSecond !== null && (
          <li>{texts.address(format.number(requestBurst), format.number(requestsPerSecond))}</li>
        )}
        <li>
          {texts.package} <Link to="/package">{t.shell.pages.package}</Link>
        </li>
        <li>
          {texts.context} <Link to="/models">{t.shell.pages.models}</Link>
        </li>
        <li>{texts.body(format.number(Math.round(bodyBytes / 2 ** 20)))}</li>
        <li>{texts.duration(format.number(requestSeconds))}</li>
        <li>{texts.keys(format.number(activeKeysPerUser))}</li>
        <li>{texts.account(format.number(usersPerAccount), format.number(changesAtOnce))}</li>
        <li>{texts.retry}</li>
        <li>{texts.evaluation}</li>
      </ul>
      <p>
        <Link to="/changes">{help.changes}</Link>
      </p>
    </section>
  );
}
