/** Repeats a query. A terminal shows the newest picture; other outputs get a line for each change. */
import { NobodyThere } from "@weiche/shared/program/admin-socket.ts";
import { plainText } from "@weiche/shared/program/plain-text.ts";
import { shortened } from "@weiche/shared/program/table.ts";
import { sleep, systemClock } from "@weiche/shared/time/clock.ts";
import type { Actions, Layout } from "./actions.ts";

/** The screen of a watching command at one time. */
export interface Scene {
  /** For `--json`. */
  readonly value: unknown;
  /** The picture for a terminal. */
  readonly text: Layout;
  /** Lines by their subjects, such as slots. They contain no ages, because every change of a line is printed. */
  readonly lines: ReadonlyMap<string, string>;
  /** Ends the watch. */
  readonly isOver?: boolean;
}

const periodMs = 1_000;

/**
 * Resolves with true once a scene is over, with false after `timeoutMs`. Waits for a router that stops answering, for
 * example during its restart. Throws if the router does not answer the first query.
 */
export async function watch(
  { printLine, terminal, wantsJson, width }: Actions,
  look: () => Promise<Scene>,
  timeoutMs: number = Infinity,
): Promise<boolean> {
  const untilMs = systemClock.monotonicMs() + timeoutMs;
  const draws = Boolean(terminal.output.isTTY) && !wantsJson();
  let before: Scene | undefined;
  let isAway = false;
  for (;;) {
    let scene: Scene | undefined;
    try {
      scene = await look();
    } catch (error) {
      if (!(error instanceof NobodyThere) || !before) throw error;
      if (!isAway) terminal.errors.write("The router does not answer. Waiting for it.\n");
    }
    isAway = scene === undefined;
    if (scene) {
      if (draws) draw(terminal.output, scene, width());
      else printChanges(scene, before, printLine, wantsJson());
      if (scene.isOver) return true;
      before = scene;
    }
    const leftMs = untilMs - systemClock.monotonicMs();
    if (leftMs <= 0) return false;
    await sleep(systemClock, Math.min(periodMs, leftMs));
  }
}

/** Draws over the previous picture. Clearing the screen first would flicker. */
function draw(output: Actions["terminal"]["output"], { text }: Scene, width: number | undefined): void {
  const rows = (output as { readonly rows?: number }).rows ?? Infinity;
  const lines = text(width).split("\n");
  const shown = lines.length < rows ? lines : [...lines.slice(0, rows - 2), `… ${lines.length - rows + 2} more lines`];
  const cut = shown.map((line) => (width === undefined ? line : shortened(line, width)));
  output.write(`\u001b[H${cut.map((line) => `${line}\u001b[K\n`).join("")}\u001b[J`);
}

function printChanges(
  scene: Scene,
  before: Scene | undefined,
  printLine: Actions["printLine"],
  wantsJson: boolean,
): void {
  const gone = [...(before?.lines.keys() ?? [])].filter((subject) => !scene.lines.has(subject));
  const changed = [...scene.lines].filter(([subject, line]) => before?.lines.get(subject) !== line);
  if (before && gone.length + changed.length === 0) return;
  if (wantsJson) return printLine(scene.value, "");
  const time = Temporal.Now.plainTimeISO().toString({ smallestUnit: "second" });
  for (const [subject, line] of changed) printLine(null, plainText(`${time}  ${subject}  ${line}`));
  for (const subject of gone) printLine(null, plainText(`${time}  ${subject}  gone`));
  if (!before && changed.length === 0) printLine(null, `${time}  nothing`);
}
