/** The agents' bounds on JSON Schemas for the help page. null if only the size is bounded. */
export const schemaBounds = {
  size: { others: 1_000_000, vllm: 500_000 },
  repetition: { others: null, vllm: 128 },
  choices: { others: 48, vllm: 500 },
  ways: { others: 5_000, vllm: 5_000 },
  tools: { others: 128, vllm: 500 },
  levels: { others: 100, vllm: 100 },
  name: { others: 256, vllm: 256 },
} as const;
