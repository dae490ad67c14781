/** The changelog page: past and announced changes. */
import type { Answer } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import { Badge } from "../../elements/badge.tsx";
import { ButtonLink } from "../../elements/button.tsx";
import { Empty } from "../../elements/empty.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { Page } from "../../elements/page.tsx";
import { useTexts } from "../../messages/messages.ts";
import { useNow } from "../../time/now.ts";

type Change = Answer<"listChanges">["items"][number];

export default function ChangesPage() {
  const { t } = useTexts();
  const read = useRead("listChanges", {});
  return (
    <Page
      title={t.shell.pages.changes}
      lead={t.changes.lead}
      actions={<ButtonLink to="/models">{t.shell.pages.models}</ButtonLink>}
    >
      <Loaded read={read}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title={t.changes.empty} hint={t.changes.emptyHint} />
          ) : (
            <ol className="rows card">
              {items.map((change) => (
                <ChangeRow key={`${change.at} ${change.text.en}`} change={change} />
              ))}
            </ol>
          )
        }
      </Loaded>
    </Page>
  );
}

function ChangeRow({ change: { at, text, models } }: { readonly change: Change }) {
  const { t, format } = useTexts();
  const isAhead = Date.parse(at) > useNow();
  return (
    <li className="change">
      <p className="change-head">
        <time dateTime={at}>{format.date(at)}</time>
        {isAhead && <Badge tone="accent">{t.changes.ahead}</Badge>}
        {models.map((model) => (
          <code key={model}>{model}</code>
        ))}
      </p>
      <p className="change-text">{text[format.language]}</p>
    </li>
  );
}
