import { expect, test } from "vitest";
import { stopWish } from "./stop-wish.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";

test("one key press that arrives twice counts once, and a second key press insists", () => {
  const clock = new VirtualClock();
  const said: string[] = [];
  const wish = stopWish(
    clock,
    () => said.push("stop"),
    () => said.push("now"),
  );
  wish();
  wish();
  expect(said).toEqual(["stop"]);
  clock.advance(499);
  wish();
  expect(said).toEqual(["stop"]);
  clock.advance(1);
  wish();
  expect(said).toEqual(["stop", "now"]);
});
