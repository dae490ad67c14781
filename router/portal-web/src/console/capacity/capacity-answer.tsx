/** Shows the answer of a simulation: what the GPUs earn, waits by model, slots, and the values behind it. */
import type { ConsoleCapacity } from "../../../../src/surface/contract/console.ts";
import { Table } from "../../elements/table.tsx";
import { useConsoleTexts } from "../texts.ts";

type Answer = NonNullable<ConsoleCapacity["answer"]>;

interface PartProps {
  readonly answer: Answer;
}

export function CapacityAnswer({ answer }: PartProps) {
  const { c, format } = useConsoleTexts();
  const texts = c.capacity;
  const { requests, from, until, endedAt, leftOut } = answer;
  const times = [from, until, endedAt].map((instant) => format.dateTime(instant)) as [string, string, string];
  return (
    <>
      <p className="soft">{texts.about(format.number(requests), ...times)}</p>
      {leftOut > 0 && <p className="problem">{texts.leftOut(format.number(leftOut))}</p>}
      <div className="capacity">
        <Money answer={answer} />
        <Models answer={answer} />
        <Slots answer={answer} />
        <Values title={texts.measured} hint={texts.measuredHint} values={answer.measured} />
        <Values title={texts.assumed} hint={texts.assumedHint} values={answer.assumed} />
      </div>
    </>
  );
}

function Money({ answer: { creditsPerGpuHour, gpus, switchShare, drainShare } }: PartProps) {
  const { c, format } = useConsoleTexts();
  const texts = c.capacity;
  return (
    <section className="card">
      <h2>{texts.money}</h2>
      <p className="number">{texts.creditsPerGpuHour(format.number(Math.round(creditsPerGpuHour)))}</p>
      <p className="number soft">{texts.gpus(format.number(Number(gpus.toFixed(1))))}</p>
      <p className="number soft">{texts.lost(format.percent(switchShare), format.percent(drainShare))}</p>
    </section>
  );
}

function Models({ answer: { models } }: PartProps) {
  const { c, format } = useConsoleTexts();
  const { models: title, modelColumns: columns, pair } = c.capacity;
  return (
    <section className="wide">
      <h2>{title}</h2>
      <Table
        caption={title}
        rows={models}
        rowKey={({ model }) => model}
        columns={[
          { name: "model", title: columns.model, cell: ({ model }) => model },
          { name: "requests", title: columns.requests, isNumber: true, cell: (one) => format.number(one.requests) },
          {
            name: "wait",
            title: columns.wait,
            isNumber: true,
            cell: (one) => pair(format.duration(one.waitP50Seconds), format.duration(one.waitP99Seconds)),
          },
          {
            name: "firstToken",
            title: columns.firstToken,
            isNumber: true,
            cell: (one) => format.duration(one.firstTokenP99Seconds),
          },
          { name: "refused", title: columns.refused, isNumber: true, cell: (one) => format.percent(one.refusedShare) },
        ]}
      />
    </section>
  );
}

function Slots({ answer: { slots } }: PartProps) {
  const { c, format } = useConsoleTexts();
  const { slots: title, slotColumns: columns } = c.capacity;
  return (
    <section className="wide">
      <h2>{title}</h2>
      <Table
        caption={title}
        rows={slots}
        rowKey={({ node, slot }) => `${node}/${slot}`}
        columns={[
          {
            name: "slot",
            title: columns.slot,
            cell: ({ node, slot, models }) => (
              <>
                <strong>{c.slots.name(node, slot)}</strong> <small className="soft">{format.list(models)}</small>
              </>
            ),
          },
          { name: "waiting", title: columns.waiting, isNumber: true, cell: (one) => format.percent(one.waitShare) },
          {
            name: "switching",
            title: columns.switching,
            isNumber: true,
            cell: (one) => format.percent(one.switchShare),
          },
          { name: "draining", title: columns.draining, isNumber: true, cell: (one) => format.percent(one.drainShare) },
          {
            name: "switches",
            title: columns.switches,
            isNumber: true,
            cell: (one) => format.number(Number(one.switchesPerHour.toFixed(1))),
          },
          {
            name: "credits",
            title: columns.credits,
            isNumber: true,
            cell: (one) => format.number(Math.round(one.creditsPerGpuHour)),
          },
        ]}
      />
    </section>
  );
}

interface ValuesProps {
  readonly title: string;
  readonly hint: string;
  readonly values: Answer["assumed"];
}

function Values({ title, hint, values }: ValuesProps) {
  const { c, format } = useConsoleTexts();
  const texts = c.capacity;
  if (values.length === 0) return null;
  return (
    <section className="card">
      <h2>{title}</h2>
      <p className="soft">{hint}</p>
      <ul className="values">
        {values.map(({ path, models, value }) => (
          <li key={`${path} ${models.join(" ")}`}>
            {texts.told(path, value, models.length === 0 ? texts.allModels : format.list(models))}
          </li>
        ))}
      </ul>
    </section>
  );
}
