/** A check of one behaviour that every engine must show with a router and an agent. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Answer } from "../cluster/api-client.ts";
import type { EngineKind } from "./engine-kinds.ts";
import type { Service } from "./service.ts";

export interface Check {
  readonly name: string;
  /** Whether the check takes minutes and runs only with `--long`. */
  readonly isLong?: boolean;
  /** The timeout without the engine's start. */
  readonly boundMs?: number;
  /** Returns why this kind of engine cannot do it, or undefined if it can. */
  readonly notPossible?: (kind: EngineKind) => string | undefined;
  /** Throws if the engine fails. The result, such as a measured time, becomes a note in the table. */
  readonly run: (service: Service) => Promise<string | void>;
}

export type Outcome = "pass" | "fail" | "not possible" | "not run";

export interface CheckResult {
  readonly check: string;
  readonly outcome: Outcome;
  /** A line with the reason of a failure or the measured values. */
  readonly note: string;
  readonly seconds: number;
}

const boundMsDefault = 60_000;

/** Runs a check. Never throws, because an exception becomes a failed result. */
export async function runCheck(check: Check, service: Service, withLong: boolean): Promise<CheckResult> {
  const sinceMs = performance.now();
  const ended = (outcome: Outcome, note: string): CheckResult => {
    const seconds = Math.round((performance.now() - sinceMs) / 100) / 10;
    return { check: check.name, outcome, note: note.replaceAll(/\s+/g, " ").slice(0, 300), seconds };
  };
  const reason = check.notPossible?.(service.kind);
  if (reason !== undefined) return ended("not possible", reason);
  if (check.isLong && !withLong) return ended("not run", "takes minutes: --long");
  const boundMs = service.kind.startMs + (check.boundMs ?? boundMsDefault);
  const over = new AbortController();
  const deadline = sleep(boundMs, undefined, { signal: over.signal }).then(
    () => Promise.reject(new Error(`not complete after ${boundMs / 1_000} s`)),
    () => undefined,
  );
  try {
    await service.freshAccount();
    const note = await Promise.race([check.run(service), deadline]);
    return ended("pass", note ?? "");
  } catch (error) {
    return ended("fail", error instanceof Error ? error.message : String(error));
  } finally {
    over.abort();
  }
}

/** Throws an error with the expectation and the observation if the condition is false. */
export function expect(condition: boolean, expected: string, seen: unknown = ""): asserts condition {
  if (condition) return;
  const told = typeof seen === "string" ? seen : JSON.stringify(seen);
  throw new Error(told === "" ? expected : `${expected}; seen: ${told}`);
}

/** Expects the refusal of a prompt that is too long. Returns the window and the tokens of input and completion. */
export function expectOverflow({ status, error }: Answer): number[] {
  expectEqual(status, 400, "the status");
  expectEqual(error?.type, "ContextWindowExceededError", "error.type");
  const [window, , input, completion] = (error!.message.match(/\d+/g) ?? []).map(Number);
  return [window!, input!, completion!];
}

type Plain = string | number | boolean | null | undefined;

export function expectEqual<Value extends Plain>(seen: Value, expected: Value, what: string): void {
  expect(seen === expected, `${what} is ${JSON.stringify(expected)}`, JSON.stringify(seen) ?? "undefined");
}
