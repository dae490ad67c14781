import fc from "fast-check";
import { expect, test } from "vitest";
import { EndController, type EndSignal } from "./end-signal.ts";

type Step = readonly ["abort" | "add" | "remove", number];

const steps = fc.array(fc.tuple(fc.constantFrom("abort", "add", "remove"), fc.nat(3)));

/** Returns the called listeners, in order, and the state of the signal after the steps. */
function told(controller: { readonly signal: EndSignal; abort(reason: Error): void }, history: readonly Step[]) {
  const { signal } = controller;
  const heard: number[] = [];
  const listeners = [0, 1, 2, 3].map((n) => () => heard.push(n) as unknown as void);
  for (const [step, n] of history) {
    if (step === "abort") controller.abort(reasons[n]!);
    else if (step === "add") signal.addEventListener("abort", listeners[n]!);
    else signal.removeEventListener("abort", listeners[n]!);
  }
  return { heard, aborted: signal.aborted, reason: signal.reason };
}

const reasons = [0, 1, 2, 3].map((n) => new Error(`reason ${n}`));

test("property: it calls the same listeners as an AbortController, with the same reason", () => {
  fc.assert(
    fc.property(steps, (history) => {
      expect(told(new EndController(), history)).toEqual(told(new AbortController(), history));
    }),
  );
});

test("`throwIfAborted` throws the reason after the abort", () => {
  const controller = new EndController();
  controller.signal.throwIfAborted();
  controller.abort(reasons[1]!);
  expect(() => controller.signal.throwIfAborted()).toThrow(reasons[1]);
});

test("a listener that an earlier listener removes during the abort is not called", () => {
  const heard: string[] = [];
  for (const controller of [new EndController(), new AbortController()]) {
    const second = () => heard.push("second");
    controller.signal.addEventListener("abort", () => controller.signal.removeEventListener("abort", second));
    controller.signal.addEventListener("abort", second);
    controller.abort(reasons[0]!);
  }
  expect(heard).toEqual([]);
});
