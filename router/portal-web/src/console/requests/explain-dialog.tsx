/** The dialog that explains a request: how it ended, the nodes that were tried, and its usage records. */
import type { ConsoleContract } from "../../../../src/surface/contract/contract.ts";
import type { Reply } from "../../../../src/surface/contract/route.ts";
import { Button } from "../../elements/button.tsx";
import { Dialog } from "../../elements/dialog.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { lengthOf, reasonText } from "../../elements/requests/request-columns.tsx";
import { Table } from "../../elements/table.tsx";
import { useRead } from "../api.ts";
import { useConsoleTexts } from "../texts.ts";

type Explained = Reply<ConsoleContract["explainRequest"]>;
type Tried = NonNullable<Explained["ended"]>["tried"][number];

export function ExplainDialog({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const { t, c } = useConsoleTexts();
  const read = useRead("explainRequest", { params: { id } });
  return (
    <Dialog title={c.requests.title} onClose={onClose} wide>
      <Loaded read={read}>{(explained) => <Explanation explained={explained} />}</Loaded>
      <div className="actions">
        <Button onClick={onClose}>{t.shell.close}</Button>
      </div>
    </Dialog>
  );
}

function Explanation({ explained }: { readonly explained: Explained }) {
  const { c, format } = useConsoleTexts();
  const { id, acceptedAt, running, ended, setAside, failures } = explained;
  const request = running ?? ended;
  return (
    <>
      <p>
        <code>{id}</code>
        <small className="reason">
          {format.dateTime(acceptedAt)}
          {request?.model !== undefined && ` · ${request.model}`}
        </small>
      </p>
      {request === null && <p className="hint">{c.requests.forgotten}</p>}
      <End explained={explained} />
      {request !== null &&
        (request.tried.length === 0 ? (
          <p>{c.requests.notSent}</p>
        ) : (
          <section>
            <h3>{c.requests.attempts}</h3>
            <ol className="explained">
              {request.tried.map((tried, index) => (
                <li key={index}>
                  <Attempt tried={tried} />
                </li>
              ))}
            </ol>
          </section>
        ))}
      <Cost explained={explained} />
      {setAside.map(({ node, attempt, reason, detail }) => (
        <p key={attempt}>{c.requests.setAside(node, detail ?? reason)}</p>
      ))}
      {failures.length > 0 && (
        <section>
          <h3>{c.requests.failures}</h3>
          <ul className="explained">
            {failures.map(({ node, slot, failure }) => (
              <li key={`${node} ${slot}`}>
                <strong>{c.slots.name(node, slot)}</strong>{" "}
                {c.slots.failures[failure.kind](failure.model, format.duration(Math.floor(failure.seconds)))}{" "}
                {failure.reason}
              </li>
            ))}
          </ul>
        </section>
      )}
      {request === null && explained.usage?.length === 0 && explained.unanswered === null && (
        <p className="soft">{c.requests.unknown}</p>
      )}
    </>
  );
}

/** How it ended, as the router remembers it or the database has it. */
function End({ explained: { running, ended, unanswered } }: { readonly explained: Explained }) {
  const texts = useConsoleTexts();
  const { c } = texts;
  if (running) return <p>{c.requests.running}</p>;
  const stored = unanswered && {
    outcome: unanswered.code === null ? ("client-gone" as const) : ("refused" as const),
    ...{ status: unanswered.status, seconds: unanswered.seconds, refusal: unanswered.code ?? undefined },
  };
  const end = ended ?? stored;
  if (!end) return null;
  const reason = end.refusal === undefined ? "" : reasonText(end.refusal, texts);
  const status = end.status === 0 ? "" : String(end.status);
  return (
    <p>
      <strong>{c.requests.outcomes[end.outcome]}</strong>{" "}
      {c.requests.end(status, reason, lengthOf(end.seconds, texts)).trim()}
      {end.refusal !== undefined && (
        <>
          {" "}
          <code>{end.refusal}</code>
        </>
      )}
    </p>
  );
}

function Attempt({ tried }: { readonly tried: Tried }) {
  const texts = useConsoleTexts();
  const { c } = texts;
  const { node, slot, sentAfterSeconds, repliedAfterSeconds, result, waitedFor, waitedSeconds } = tried;
  const length = (seconds: number) => lengthOf(seconds, texts);
  const after = repliedAfterSeconds === undefined ? undefined : length(repliedAfterSeconds);
  return (
    <>
      <strong>
        {c.requests.attempt(slot === undefined ? node : c.slots.name(node, slot), length(sentAfterSeconds))}
      </strong>{" "}
      {waitedFor !== undefined && `${c.requests.waited(length(waitedSeconds ?? 0), c.requests.waits[waitedFor])} `}
      {after !== undefined &&
        (result === "answered"
          ? c.requests.replied(after)
          : result === "lost"
            ? c.requests.lost(after)
            : c.requests.refusedThere(result ?? "–", after))}
    </>
  );
}

function Cost({ explained: { usage, running } }: { readonly explained: Explained }) {
  const { t, c, format } = useConsoleTexts();
  const { costColumns } = c.requests;
  if (usage === null) return <p>{c.requests.noDatabase}</p>;
  if (usage.length === 0) return running ? null : <p>{c.requests.free}</p>;
  return (
    <section>
      <h3>{c.requests.cost}</h3>
      <Table
        caption={c.requests.cost}
        rows={usage}
        rowKey={({ attempt }) => String(attempt)}
        columns={[
          { name: "node", title: costColumns.node, cell: ({ node }) => node },
          { name: "outcome", title: costColumns.outcome, cell: ({ outcome }) => <code>{outcome}</code> },
          {
            name: "tokens",
            title: costColumns.tokens,
            isNumber: true,
            cell: ({ promptTokens, completionTokens }) =>
              t.requests.tokens(format.number(promptTokens), format.number(completionTokens)),
          },
          {
            name: "credits",
            title: costColumns.credits,
            isNumber: true,
            cell: ({ credits }) => format.number(credits),
          },
        ]}
      />
    </section>
  );
}
