/** Counts of a run of Vitest, from its report in JSON. */

export interface TestReport {
  readonly testResults: readonly { readonly assertionResults: readonly TestResult[] }[];
}

interface TestResult {
  readonly status: string;
  readonly meta?: { readonly notRun?: string };
}

export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  /** Tests that need what this machine lacks, by what that is. */
  readonly notRun: ReadonlyMap<string, number>;
}

/** A test that was skipped without saying why is a failure: it proves nothing, and nobody would notice. */
export function countTests({ testResults }: TestReport): TestCounts {
  const all = testResults.flatMap(({ assertionResults }) => assertionResults);
  const passed = all.filter(({ status }) => status === "passed").length;
  const reasons = all.flatMap(({ status, meta }) => (status === "skipped" && meta?.notRun ? [meta.notRun] : []));
  const notRun = new Map([...Map.groupBy(reasons, (reason) => reason)].map(([reason, { length }]) => [reason, length]));
  return { passed, failed: all.length - passed - reasons.length, notRun };
}
