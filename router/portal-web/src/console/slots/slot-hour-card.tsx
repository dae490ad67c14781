/** The last hour of a slot: a strip of its active models, and a table of its switches. */
import { Table, type Column } from "../../elements/table.tsx";
import type { ConsoleMessages } from "../texts.ts";
import { useConsoleTexts } from "../texts.ts";
import type { Lane } from "./lanes.ts";
import { parts, slotHour, type SlotHour } from "./slot-hour.ts";

interface SlotHourCardProps {
  readonly lane: Lane;
  readonly name: string;
  readonly nowMs: number;
}

const hourMs = 3_600_000;

export function SlotHourCard({ lane: { slot, history }, name, nowMs }: SlotHourCardProps) {
  const { c, format } = useConsoleTexts();
  const hour = slotHour(history, slot.active, nowMs);
  const { switches, failed, share, seconds, spanMs } = hour;
  const short = spanMs < hourMs - 60_000 ? ` ${c.slots.hourShort(format.duration(spanMs / 1000))}` : "";
  const done = switches.length - failed;
  if (switches.length === 0)
    return (
      <>
        <Strip hour={hour} label={c.slots.timeline(name)} models={slot.models} />
        <p className="soft number">
          {c.slots.noSwitch}
          {short}
        </p>
      </>
    );
  return (
    <>
      <Strip hour={hour} label={c.slots.timeline(name)} models={slot.models} />
      <p className="soft number">
        {c.slots.hour(format.number(done), format.percent(share), format.number(failed))}
        {short}
        {done > 0 && (
          <span className="parts">
            {parts.map((part) => `${c.slots.parts[part]} ${format.duration(seconds[part])}`).join(" · ")}
          </span>
        )}
      </p>
      <details>
        <summary>{c.slots.switches}</summary>
        <Switches hour={hour} name={name} />
      </details>
    </>
  );
}

function Switches({ hour, name }: { readonly hour: SlotHour; readonly name: string }) {
  const { t, c, format } = useConsoleTexts();
  const { columns, failedStart, nothing } = c.slots;
  const shown: readonly Column<SlotHour["switches"][number]>[] = [
    { name: "at", title: columns.at, cell: ({ endedAt }) => format.second(endedAt) },
    {
      name: "models",
      title: columns.models,
      cell: ({ from, model, failed }) => (failed ? `${model}: ${failedStart}` : `${from ?? nothing} → ${model}`),
    },
    {
      name: "total",
      title: columns.total,
      isNumber: true,
      cell: ({ failed, seconds }) => (failed ? t.shell.unknown : format.duration(seconds)),
    },
    ...parts.map((part) => partColumn(part, c, (seconds) => format.duration(seconds), t.shell.unknown)),
  ];
  return (
    <Table
      caption={`${c.slots.switches}: ${name}`}
      columns={shown}
      rows={hour.switches}
      rowKey={({ endedAt, model }) => `${endedAt} ${model}`}
    />
  );
}

function partColumn(
  part: (typeof parts)[number],
  c: ConsoleMessages,
  duration: (seconds: number) => string,
  unknown: string,
): Column<SlotHour["switches"][number]> {
  return {
    name: part,
    title: c.slots.parts[part],
    isNumber: true,
    cell: (one) => (one.parts[part] === undefined ? unknown : duration(one.parts[part])),
  };
}

interface StripProps {
  readonly hour: SlotHour;
  readonly label: string;
  readonly models: readonly string[];
}

const tintsMax = 6;

function Strip({ hour: { spans, spanMs }, label, models }: StripProps) {
  return (
    <figure aria-label={label}>
      <svg className="strip" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">
        {spans.map(({ kind, model, fromMs, toMs }) => (
          <rect
            key={`${kind} ${fromMs}`}
            className={kind === "active" ? `tint-${models.indexOf(model) % tintsMax}` : kind}
            x={(fromMs / spanMs) * 1000}
            width={Math.max(2, ((toMs - fromMs) / spanMs) * 1000)}
            height={10}
          >
            <title>{model}</title>
          </rect>
        ))}
      </svg>
    </figure>
  );
}
