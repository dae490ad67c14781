/** Groupings, policies and assumptions side by side, and what follows from them in words. */
import { formatTable } from "@weiche/shared/program/table.ts";
import type { Answer } from "./answer.ts";
import { fixed, percent, seconds } from "./numbers.ts";

/** Groupings that are shown as text. All are in `--json`. */
const groupingsShown = 8;

export function groupingLines({ groupings }: Answer, width: number | undefined): readonly string[] {
  if (groupings.length === 0) return [];
  const rows = groupings
    .slice(0, groupingsShown)
    .map(({ groups, slots, isMet, waitSeconds, firstTokenSeconds, refusedShare }) => [
      ...[groups.map((group) => `${group.models.join(" + ")} (${group.slots})`).join(", "), String(slots)],
      ...[`${fixed(waitSeconds.p50)} / ${fixed(waitSeconds.p99)}`, seconds(firstTokenSeconds.p99)],
      ...[percent(refusedShare), isMet ? "yes" : "no"],
    ]);
  const heads = ["grouping (slots)", "slots", "wait s p50/p99", "first token p99", "refused", "goals met"];
  return ["", formatTable(heads, rows, width)];
}

export function variedLines(
  { all, policies, sensitivity, fleet, slots }: Answer,
  width: number | undefined,
): readonly string[] {
  if (!all || !fleet || policies.length + sensitivity.length === 0) return [];
  const hasGoals = fleet.verdicts.length > 0;
  const switchesPerHour = slots.reduce((sum, slot) => sum + slot.switchesPerHour, 0);
  const base = { ...all, name: "as planned", switchesPerHour, isMet: fleet.isMet };
  const row = ({ name, waitSeconds, firstTokenSeconds, refusedShare, switchesPerHour, isMet }: typeof base) => [
    ...[name, `${fixed(waitSeconds.p50)} / ${fixed(waitSeconds.p99)}`, seconds(firstTokenSeconds.p99)],
    ...[percent(refusedShare), switchesPerHour.toFixed(1), ...(hasGoals ? [isMet ? "yes" : "no"] : [])],
  ];
  const heads = ["wait s p50/p99", "first token p99", "refused", "switches/h", ...(hasGoals ? ["goals met"] : [])];
  const table = (what: string, varied: readonly (typeof base)[]) =>
    varied.length === 0 ? [] : ["", formatTable([what, ...heads], [base, ...varied].map(row), width)];
  const change = ({ firstTokenSeconds }: Compared) => Math.abs(firstTokenSeconds.p99 - all.firstTokenSeconds.p99);
  const byChange = sensitivity.toSorted((a, b) => change(b) - change(a));
  const withAll = (ones: readonly Compared[]) => ones.map((one) => ({ ...base, ...one }));
  return [
    ...table("policy", withAll(policies)),
    ...bestPolicy(base, withAll(policies)),
    ...table("assumption", withAll(byChange)),
    ...strongestAssumption(base, byChange[0]),
  ];
}

type Compared = Omit<Answer["policies"][number], "verdicts">;

/** Chance alone moves the first token by about so much. */
const noticeableShare = 0.02;

/** The policy that meets the goals with the shortest first token. Equal ones are ordered by their switches. */
function bestPolicy(base: Compared, policies: readonly Compared[]): readonly string[] {
  if (policies.length === 0) return [];
  const rank = ({ isMet, firstTokenSeconds, switchesPerHour }: Compared) =>
    [Number(!isMet), firstTokenSeconds.p99, switchesPerHour] as const;
  const byRank = (a: Compared, b: Compared) => {
    const [x, y] = [rank(a), rank(b)];
    return x[0] - y[0] || x[1] - y[1] || x[2] - y[2];
  };
  const best = [base, ...policies].toSorted(byRank)[0]!;
  const gain = base.firstTokenSeconds.p99 - best.firstTokenSeconds.p99;
  if (best.isMet === base.isMet && gain <= noticeableShare * base.firstTokenSeconds.p99)
    return ["none of these shortens the first token p99 of the plan's rules by more than 2 %"];
  const more = best.switchesPerHour / Math.max(base.switchesPerHour, 0.1) - 1;
  const switches = Math.abs(more) < 0.01 ? "as many" : `${percent(Math.abs(more))} ${more > 0 ? "more" : "fewer"}`;
  const was = `${seconds(base.firstTokenSeconds.p99)} as planned`;
  return [
    `${best.name} is best: first token p99 ${seconds(best.firstTokenSeconds.p99)} (${was}), ${switches} switches`,
  ];
}

function strongestAssumption(base: Compared, first: Compared | undefined): readonly string[] {
  if (!first) return [];
  const [before, after] = [base.firstTokenSeconds.p99, first.firstTokenSeconds.p99];
  if (Math.abs(after - before) <= noticeableShare * before && first.isMet === base.isMet)
    return ["no assumption about the engines moves the first token p99 by more than 2 %"];
  const goals = first.isMet === base.isMet ? "" : `, and the goals are ${first.isMet ? "met" : "missed"} with it`;
  const name = first.name.split(" ")[0]!;
  return [
    `${name} moves the answer most: ${first.name} gives a first token p99 of ${seconds(after)} instead of ${seconds(before)}${goals}. Measure it first`,
  ];
}
