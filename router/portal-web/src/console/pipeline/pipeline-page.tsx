/** The page of the pipeline: whether usage gets from the nodes into the totals. */
import type { ConsolePipeline } from "../../../../src/surface/contract/console.ts";
import { Badge } from "../../elements/badge.tsx";
import { Page } from "../../elements/page.tsx";
import { Table } from "../../elements/table.tsx";
import { LiveItems } from "../live-mark.tsx";
import { useClock, useLive } from "../live.ts";
import { useConsoleTexts } from "../texts.ts";

/** The threshold of the alert WeicheOutboxOld. */
const waitingSecondsMax = 300;

export default function PipelinePage() {
  const { c } = useConsoleTexts();
  const live = useLive("pipeline");
  const pipeline = live.items?.get("pipeline")?.value;
  const lead = useLead(pipeline);
  return (
    <Page title={c.pages.pipeline} lead={lead}>
      <LiveItems live={live}>
        {() =>
          pipeline && (
            <div className="pipeline">
              <Unacknowledged pipeline={pipeline} />
              <Evaluation pipeline={pipeline} />
              <Database database={pipeline.database} />
              <SetAside pipeline={pipeline} />
            </div>
          )
        }
      </LiveItems>
    </Page>
  );
}

function useLead(pipeline: ConsolePipeline | undefined): string | undefined {
  const { c, format } = useConsoleTexts();
  const { good, waiting, down } = c.pipeline.lead;
  if (!pipeline) return undefined;
  if (pipeline.database.answersInMs === null) return down;
  const { oldestSeconds = 0 } = pipeline.unacknowledged;
  return oldestSeconds > waitingSecondsMax ? waiting(format.duration(oldestSeconds)) : good;
}

interface PartProps {
  readonly pipeline: ConsolePipeline;
}

function Unacknowledged({ pipeline: { unacknowledged, waitingForCommit } }: PartProps) {
  const { t, c, format } = useConsoleTexts();
  const { records, oldestSeconds, nodes, unknown } = unacknowledged;
  const { columns } = c.pipeline;
  return (
    <section className="card">
      <h2>{c.pipeline.unacknowledged}</h2>
      <p className="number">
        {c.pipeline.records(format.number(records))}
        {oldestSeconds !== undefined && `, ${c.pipeline.oldest(format.duration(oldestSeconds))}`}
      </p>
      <p className="number soft">{c.pipeline.waitingForCommit(format.number(waitingForCommit))}</p>
      {unknown.length > 0 && <p className="soft">{c.pipeline.unknown(format.list(unknown))}</p>}
      {nodes.length > 0 && (
        <Table
          caption={c.pipeline.byNode}
          rows={nodes}
          rowKey={({ name }) => name}
          columns={[
            { name: "node", title: columns.node, cell: ({ name }) => name },
            { name: "records", title: columns.records, isNumber: true, cell: (node) => format.number(node.records) },
            {
              name: "oldest",
              title: columns.oldest,
              isNumber: true,
              cell: ({ oldestSeconds: age }) => (age === undefined ? t.shell.unknown : format.duration(age)),
            },
          ]}
        />
      )}
    </section>
  );
}

function Evaluation({ pipeline: { lastEvaluationAt, evaluateEverySeconds } }: PartProps) {
  const { c, format } = useConsoleTexts();
  const nowMs = useClock(1_000);
  const age = lastEvaluationAt === null ? undefined : Math.max(0, (nowMs - Date.parse(lastEvaluationAt)) / 1000);
  return (
    <section className="card">
      <h2>{c.pipeline.evaluation}</h2>
      <p className="number">
        {age === undefined ? c.pipeline.never : c.pipeline.evaluatedAgo(format.duration(Math.floor(age)))}{" "}
        {age !== undefined && age > 3 * evaluateEverySeconds && <Badge tone="bad">{c.pipeline.late}</Badge>}
      </p>
      <p className="soft">{c.pipeline.every(format.duration(evaluateEverySeconds))}</p>
    </section>
  );
}

function Database({ database: { answersInMs, pools, keysReadSecondsAgo } }: Pick<ConsolePipeline, "database">) {
  const { c, format } = useConsoleTexts();
  const { poolColumns: columns } = c.pipeline;
  return (
    <section className="card">
      <h2>{c.pipeline.database}</h2>
      <p className="number">
        {answersInMs === null ? (
          <Badge tone="bad">{c.pipeline.noAnswer}</Badge>
        ) : (
          c.pipeline.answersIn(format.number(answersInMs))
        )}
      </p>
      <p className="number soft">{c.pipeline.keys(format.duration(keysReadSecondsAgo))}</p>
      <Table
        caption={columns.pool}
        rows={pools}
        rowKey={({ pool }) => pool}
        columns={[
          { name: "pool", title: columns.pool, cell: ({ pool }) => c.pipeline.pools[pool] },
          {
            name: "used",
            title: columns.used,
            isNumber: true,
            cell: ({ used, max }) => c.pipeline.poolUse(format.number(used), format.number(max)),
          },
          { name: "waiting", title: columns.waiting, isNumber: true, cell: ({ waiting }) => format.number(waiting) },
        ]}
      />
    </section>
  );
}

function SetAside({ pipeline: { setAside } }: PartProps) {
  const { t, c, format } = useConsoleTexts();
  return (
    <section className="card">
      <h2>{c.pipeline.setAside}</h2>
      <p className="number">
        {setAside === null
          ? t.shell.unknown
          : c.pipeline.setAsideCount(format.number(setAside.lastDay), format.number(setAside.total))}
      </p>
      <p className="soft">{c.pipeline.setAsideHint}</p>
    </section>
  );
}
