/** Fits the time of an engine's step to measurements: a + b x running answers + c x tokens in their contexts. */

export interface StepPoint {
  readonly running: number;
  /** The tokens in the contexts of all running answers. */
  readonly contextTokens: number;
  readonly stepMs: number;
}

interface StepTime {
  readonly baseMs: number;
  readonly perRunningMs: number;
  readonly perThousandTokensMs: number;
}

/** Least squares of relative errors. No part is negative, because more work never makes a step faster. */
export function fitStep(points: readonly StepPoint[]): StepTime {
  const columns = [
    () => 1,
    ({ running }: StepPoint) => running,
    ({ contextTokens }: StepPoint) => contextTokens / 1_000,
  ];
  let used = [0, 1, 2];
  for (;;) {
    const values = solved(
      points,
      used.map((index) => columns[index]!),
    );
    const negative = values && used.filter((_, at) => values[at]! < 0);
    if (negative?.length === 0) {
      const of = (index: number) => (used.includes(index) ? values![used.indexOf(index)]! : 0);
      return { baseMs: of(0), perRunningMs: of(1), perThousandTokensMs: of(2) };
    }
    // Without a solution, the points do not tell the parts apart, and the last one is left out.
    const left = negative ? negative.at(-1)! : used.at(-1)!;
    used = used.filter((index) => index !== left);
  }
}

/** Solves the normal equations by elimination. Undefined if they have no single solution. */
function solved(
  points: readonly StepPoint[],
  columns: readonly ((point: StepPoint) => number)[],
): number[] | undefined {
  const rows = columns.map((a) => [
    ...columns.map((b) => sum(points, (point) => (a(point) * b(point)) / point.stepMs ** 2)),
    sum(points, (point) => a(point) / point.stepMs),
  ]);
  for (const [index, row] of rows.entries()) {
    const pivot = row[index]!;
    if (Math.abs(pivot) < 1e-12) return undefined;
    for (const [at, other] of rows.entries()) {
      if (at === index) continue;
      const share = other[index]! / pivot;
      for (const [column, value] of row.entries()) other[column]! -= share * value;
    }
  }
  return rows.map((row, index) => row.at(-1)! / row[index]!);
}

function sum(points: readonly StepPoint[], of: (point: StepPoint) => number): number {
  return points.reduce((total, point) => total + of(point), 0);
}
