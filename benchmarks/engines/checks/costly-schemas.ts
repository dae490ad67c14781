/** Schemas that cost an engine far more than their size tells. */

export interface CostlySchema {
  readonly name: string;
  readonly schema: object;
}

function text(pattern: string): object {
  return { type: "string", pattern };
}

function named<Value>(count: number, value: Value): Record<string, Value> {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`property${at}`, value]));
}

export const costlySchemas: readonly CostlySchema[] = [
  { name: "nested repetitions", schema: text("^((a{0,50}){0,50}){0,50}$") },
  { name: "optional letters", schema: text("^(a?){1500}$") },
  { name: "a repetition of repetitions", schema: text("^(.{0,100}){0,100}$") },
  { name: "3,000 optional properties", schema: { type: "object", properties: named(3_000, { type: "string" }) } },
  {
    name: "an enum of 20,000 values",
    schema: { enum: Array.from({ length: 20_000 }, (_, at) => `value ${at}`) },
  },
  { name: "an enum of 50,000 values", schema: { enum: Array.from({ length: 50_000 }, (_, at) => at) } },
  { name: "3,000 references to itself", schema: { allOf: Array.from({ length: 3_000 }, () => ({ $ref: "#" })) } },
];
