/** The answer as text: the answer first, then the table, then what was assumed. */
import { counted } from "@weiche/shared/program/amounts.ts";
import { formatTable } from "@weiche/shared/program/table.ts";
import type { Answer } from "./answer.ts";
import { groupingLines, variedLines } from "./comparison-text.ts";
import { fixed, percent, seconds } from "./numbers.ts";

type Fleet = NonNullable<Answer["fleet"]>;

export function answerText(answer: Answer, width?: number): string {
  return [
    headOf(answer),
    ...boundLines(answer),
    ...tableOf(answer, width),
    ...brokenLines(answer),
    ...groupingLines(answer, width),
    ...variedLines(answer, width),
    ...(answer.changes.length > 0 ? ["", `what if: ${answer.changes.join("; ")}`] : []),
    ...profileLines(answer),
    ...assumedLines(answer),
  ].join("\n");
}

/** One line before the first run. */
export function boundText({ lowerBound }: Answer): string {
  return `lower bound: ${counted(lowerBound.slots, "slot")}, if no request waits and no switch takes time`;
}

function headOf(answer: Answer): string {
  const { fleet, oneLess, isStopped, doneShare, goals } = answer;
  if (!fleet) return "stopped before any fleet was measured";
  const size = `${counted(fleet.slots, "slot")} on ${counted(fleet.nodes, "node")}`;
  if (isStopped && doneShare < 1)
    return `stopped after ${percent(doneShare)} of the runs: ${size}, ${summaryOf(answer)} so far`;
  if (isStopped) return `stopped: ${size} measured last, ${valuesOf(fleet)}. The search had not ended`;
  if (goals.length === 0) return `${size}: ${summaryOf(answer)}`;
  if (!fleet.isMet) return `${size} ${fleet.slots === 1 ? "does" : "do"} not meet the goals: ${valuesOf(fleet)}`;
  const less = oneLess && !oneLess.isMet ? ` (${counted(oneLess.slots, "slot")}: ${valuesOf(oneLess)})` : "";
  return `${size} ${fleet.slots === 1 ? "suffices" : "suffice"}${less}${sharesOf(fleet)}`;
}

/** Which models share slots, if there are several groups. */
function sharesOf({ groups }: Fleet): string {
  if (groups.length < 2) return "";
  return `: ${groups.map(({ models, slots }) => `${slots} for ${models.join(", ")}`).join("; ")}`;
}

function summaryOf({ all }: Answer): string {
  return `wait p50 ${seconds(all!.waitSeconds.p50)}, p99 ${seconds(all!.waitSeconds.p99)}, refused ${percent(all!.refusedShare)}`;
}

function valuesOf({ verdicts }: Fleet): string {
  if (verdicts.length === 0) return "without goals";
  const shown = verdicts.filter(({ isMet }) => !isMet);
  return (shown.length > 0 ? shown : verdicts)
    .map(({ name, isShare, upper, model }) => `${name} ${isShare ? percent(upper) : seconds(upper)} for ${model}`)
    .join(", ");
}

function boundLines(answer: Answer): readonly string[] {
  return [boundText(answer), ""];
}

function tableOf({ models, slots }: Answer, width: number | undefined): readonly string[] {
  if (models.length === 0) return [];
  const rows = models.map(({ model, waitSeconds, firstTokenSeconds, refusedShare, activeSlots, switchesPerHour }) => [
    ...[model, `${fixed(waitSeconds.p50)} / ${fixed(waitSeconds.p99)}`, seconds(firstTokenSeconds.p99)],
    ...[percent(refusedShare), activeSlots.toFixed(2), switchesPerHour.toFixed(1)],
  ]);
  const heads = ["model", "wait s p50/p99", "first token p99", "refused", "slots active", "switches/h"];
  const busy = slots
    .filter(({ switchingShare, drainingShare }) => switchingShare + drainingShare >= 0.01)
    .toSorted((a, b) => b.switchingShare + b.drainingShare - a.switchingShare - a.drainingShare)
    .slice(0, 3)
    .map(
      ({ node, slot, switchingShare, drainingShare }) =>
        `slot ${slot} of ${node}: ${percent(switchingShare)} of the time switching, ${percent(drainingShare)} draining`,
    );
  return [formatTable(heads, rows, width), ...busy];
}

function brokenLines({ all, runs }: Answer): readonly string[] {
  if (!all || all.broken === 0) return [];
  return [
    `${fixed(all.broken / runs)} answers broke off in each run when their node failed, and their clients asked again`,
  ];
}

function profileLines({ profiles }: Answer): readonly string[] {
  const lines = (heading: string, shown: Answer["profiles"]) =>
    shown.length === 0 ? [] : ["", heading, ...shown.map(profileLine)];
  return [
    ...lines(
      "measured:",
      profiles.filter(({ isComputed }) => !isComputed),
    ),
    ...lines(
      "computed by AIConfigurator, not measured:",
      profiles.filter(({ isComputed }) => isComputed),
    ),
  ];
}

function profileLine({ model, source, values: { step, ...values } }: Answer["profiles"][number]): string {
  const steps = Object.entries(step ?? {}).map(([name, value]) => [`step.${name}`, value] as const);
  const shown = [...Object.entries(values), ...steps].map(([name, value]) => `${name} ${Number(value.toPrecision(4))}`);
  return `  ${model} (${source}): ${shown.join(", ")}`;
}

function assumedLines({ assumed }: Answer): readonly string[] {
  if (assumed.length === 0) return ["", "nothing was assumed"];
  const byModels = Map.groupBy(assumed, ({ models }) => models.join(", "));
  const lines = Array.from(byModels, ([models, values]) => {
    const shown = values.map(({ path, value }) => `${path} ${Array.isArray(value) ? value.join("/") : String(value)}`);
    return `  ${models === "" ? "" : `${models}: `}${shown.join(", ")}`;
  });
  return ["", "assumed, neither measured nor given:", ...lines];
}
