import { expect, test } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { FewLines, linesMax } from "./few-lines.ts";

function rig() {
  const clock = new VirtualClock();
  const lines = new FewLines(clock);
  const written: string[] = [];
  const say = (kind: string, peer: string, text: string) =>
    lines.say(kind, peer, ({ leftOut = 0 }) => written.push(`${text} ${leftOut}`));
  return { clock, lines, written, say };
}

test("writes a peer's first lines at once, and its last one of the minute with the number of omitted lines", () => {
  const { clock, written, say } = rig();
  for (let n = 1; n <= 1_000; n++) say("refused", "gpu-1", `${n}`);
  expect(written).toEqual(["1 0", "2 0", "3 0", "4 0"]);
  clock.advance(60_000);
  expect(written.slice(linesMax - 1)).toEqual([`1000 ${1_000 - linesMax}`]);
  say("refused", "gpu-1", "again");
  expect(written.at(-1)).toBe("again 0");
});

test("counts kinds and peers separately, and all peers above a hundred together", () => {
  const { clock, written, say } = rig();
  for (const kind of ["refused", "rejected"]) for (let n = 0; n < 10_000; n++) say(kind, `gpu-${n}`, `${kind} ${n}`);
  expect(written).toHaveLength(2 * (100 + linesMax - 1));
  clock.advance(60_000);
  expect(written.slice(-2)).toEqual(["refused 9999 9895", "rejected 9999 9895"]);
});

test("writes waiting lines when the program ends, and leaves no timer", () => {
  const { clock, lines, written, say } = rig();
  for (let n = 1; n <= 10; n++) say("refused", "gpu-1", `${n}`);
  lines[Symbol.dispose]();
  expect(written.at(-1)).toBe("10 5");
  clock.advance(60_000);
  expect(written).toHaveLength(linesMax);
});
