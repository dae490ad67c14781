/** Lists the requests that run on a node through this router, with ids and accounts, before an action touches them. */
import { Loaded } from "../elements/loaded.tsx";
import { useRead } from "./api.ts";
import { useConsoleTexts } from "./texts.ts";

const shownMax = 20;
const refreshMs = 2_000;

interface TouchedRequestsProps {
  readonly node: string;
  /** If undefined, requests of every slot are listed. */
  readonly slot?: string;
}

export function TouchedRequests({ node, slot }: TouchedRequestsProps) {
  const { c, format } = useConsoleTexts();
  const { touched } = c;
  const read = useRead("listRunning", { query: { node, limit: 1_000 } }, { refreshMs });
  return (
    <Loaded read={read}>
      {({ items }) => {
        const here = items.filter(({ tried }) => slot === undefined || tried.at(-1)?.slot === slot);
        if (here.length === 0) return <p className="soft">{touched.none}</p>;
        return (
          <>
            <p>{touched.lead(format.number(here.length))}</p>
            <ul className="touched">
              {here.slice(0, shownMax).map(({ id, model, accountId, seconds }) => (
                <li key={id}>
                  <code>{id}</code>
                  <small className="reason">
                    {touched.facts(model ?? "–", format.duration(seconds))} <AccountName id={accountId} />
                  </small>
                </li>
              ))}
            </ul>
            {here.length > shownMax && <p className="soft">{touched.more(format.number(here.length - shownMax))}</p>}
          </>
        );
      }}
    </Loaded>
  );
}

/** Shows the account's name, or its id until the name is known. */
function AccountName({ id }: { readonly id: string | undefined }) {
  const { c, t } = useConsoleTexts();
  const read = useRead("showAccount", { params: { id: id ?? "" } }, { enabled: id !== undefined });
  return c.touched.account(read.data?.name ?? id ?? t.shell.unknown);
}
