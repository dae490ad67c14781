/** Views of a node's machine. 64-bit integers become numbers, because JSON has no others. */
import type { NodeReport } from "../../nodes/node-view.ts";
import type { nodesContract } from "../contract/nodes.ts";
import type { Reply } from "../contract/route.ts";

type Shown = Pick<Reply<typeof nodesContract.showNode>, "machine" | "reading">;

/** Returns no machine if the agent reports none, such as an older version. */
export function viewMachine(report: Pick<NodeReport, "machine" | "machineReading"> | undefined): Shown {
  const { machine, machineReading: reading } = report ?? {};
  return { machine: machine && numbers(machine), reading: reading && numbers(reading) };
}

type Numbers<Value> = Value extends bigint
  ? number
  : Value extends object
    ? { readonly [Key in keyof Value]: Numbers<Value[Key]> }
    : Value;

/** Replaces bigints with numbers, also in members. */
export function numbers<Value>(value: Value): Numbers<Value> {
  const convert = (each: unknown): unknown => {
    if (typeof each === "bigint") return Number(each);
    if (Array.isArray(each)) return each.map(convert);
    if (typeof each !== "object" || each === null) return each;
    return Object.fromEntries(Object.entries(each).map(([key, part]) => [key, convert(part)]));
  };
  return convert(value) as Numbers<Value>;
}
