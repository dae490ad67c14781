/** One slot: its active model, running and waiting requests, drain, next model, and its last hour. */
import { Badge, type Tone } from "../../elements/badge.tsx";
import { Button } from "../../elements/button.tsx";
import { useConsoleTexts } from "../texts.ts";
import type { Lane } from "./lanes.ts";
import { SlotFailures } from "./slot-failures.tsx";
import { SlotHourCard } from "./slot-hour-card.tsx";

const tones: Readonly<Record<Lane["slot"]["state"], Tone>> = {
  empty: "plain",
  starting: "accent",
  active: "good",
  "draining-open": "warn",
  "draining-closed": "warn",
  stopping: "accent",
  failed: "bad",
};

interface SlotLaneProps {
  readonly lane: Lane;
  readonly nowMs: number;
  readonly onPrewarm: () => void;
}

export function SlotLane({ lane, nowMs, onPrewarm }: SlotLaneProps) {
  const { t, c, format } = useConsoleTexts();
  const { node, slot } = lane;
  const name = c.slots.name(node.name, slot.name);
  const none = t.shell.unknown;
  const whole = (seconds: number) => format.duration(Math.ceil(seconds));
  const others = slot.models.filter((model) => !slot.activeModels.includes(model));
  return (
    <section className="card lane" aria-label={name} data-state={slot.state}>
      <header>
        <h2>{name}</h2>
        <Badge tone={tones[slot.state]}>{c.slots.states[slot.state]}</Badge>
        <Happening lane={lane} nowMs={nowMs} />
        {others.length > 0 && node.state === "live" && (
          <Button onClick={onPrewarm} aria-label={`${c.slots.prewarm} ${name}`}>
            {c.slots.prewarm}
          </Button>
        )}
      </header>
      <dl className="lane-facts">
        <div>
          <dt>{c.slots.model}</dt>
          <dd className="model">{slot.activeModels.join(", ") || (slot.failed ?? none)}</dd>
        </div>
        <div>
          <dt>{c.slots.running}</dt>
          <dd className="number">
            {format.number(slot.running)}
            {slot.oldestRunningSeconds !== undefined && (
              <small>{c.slots.oldestRunning(format.duration(slot.oldestRunningSeconds))}</small>
            )}
          </dd>
        </div>
        <div>
          <dt>{c.slots.waiting}</dt>
          <dd className="number">
            {format.number(slot.waiting)}
            {slot.oldestWaitingSeconds !== undefined && (
              <small>{c.slots.oldestWaiting(format.duration(slot.oldestWaitingSeconds))}</small>
            )}
            {slot.estimates.map(({ model, nextSeconds, lastSeconds }) => (
              <small key={model}>{c.slots.estimate(model, whole(nextSeconds), whole(lastSeconds))}</small>
            ))}
          </dd>
        </div>
        <div>
          <dt>{c.slots.next}</dt>
          <dd className="model">{slot.next ?? none}</dd>
        </div>
      </dl>
      <SlotFailures lane={lane} name={name} nowMs={nowMs} />
      <SlotHourCard lane={lane} name={name} nowMs={nowMs} />
    </section>
  );
}

/** Shows the slot's drain, switch and next retry, each with its time. */
function Happening({ lane: { slot, atMs }, nowMs }: Pick<SlotLaneProps, "lane" | "nowMs">) {
  const { c, format } = useConsoleTexts();
  const since = Math.max(0, (nowMs - atMs) / 1000);
  const left = (seconds: number) => format.number(Math.max(0, Math.ceil(seconds - since)));
  const lines: string[] = [];
  if (slot.closesInSeconds !== undefined) lines.push(c.slots.closesIn(left(slot.closesInSeconds)));
  else if (slot.state === "draining-closed") lines.push(c.slots.closed);
  if (slot.switching) {
    const { phase, seconds, usualSeconds } = slot.switching;
    if (phase) lines.push(c.slots.phase(c.slots.parts[phase], format.duration(Math.floor(seconds + since))));
    if (usualSeconds !== undefined) lines.push(c.slots.usual(format.duration(usualSeconds)));
  }
  for (const { model, kind, share, seconds } of slot.troubles)
    lines.push(c.slots.troubles[kind](model, format.percent(share), format.duration(Math.floor(seconds + since))));
  if (slot.retryInSeconds !== undefined) lines.push(c.slots.retryIn(left(slot.retryInSeconds)));
  return <span className="happening number">{lines.join(" · ")}</span>;
}
