/** Counts the tests of a Vitest run, from its JSON report. */

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
  /** Number of tests that need something that this machine lacks, by the reason. */
  readonly notRun: ReadonlyMap<string, number>;
}

/** Counts tests. One that was skipped without a reason counts as failed, because otherwise nobody would notice. */
export function countTests({ testResults }: TestReport): TestCounts {
  const all = testResults.flatMap(({ assertionResults }) => assertionResults);
  const passed = all.filter(({ status }) => status === "passed").length;
  const reasons = all.flatMap(({ status, meta }) => (status === "skipped" && meta?.notRun ? [meta.notRun] : []));
  const notRun = new Map([...Map.groupBy(reasons, (reason) => reason)].map(([reason, { length }]) => [reason, length]));
  return { passed, failed: all.length - passed - reasons.length, notRun };
}
