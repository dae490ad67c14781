import { expect, test } from "vitest";
import { usedByPrograms, usedSince } from "./first-call.ts";

const row = (kind: "api" | "test-chat", totalTokens: number) => ({
  key: { kind },
  totalTokens,
  credits: `${totalTokens}.500`,
});

test("what arrives is counted from the opening of the page on, without the playground", () => {
  const before = usedByPrograms([row("api", 811), row("test-chat", 40)]);
  expect(before).toEqual({ totalTokens: 811, credits: 811.5 });
  const now = usedByPrograms([row("api", 811), row("api", 61), row("test-chat", 90)]);
  expect(usedSince(before, now)).toEqual({ totalTokens: 61, credits: 61.5 });
  expect(usedSince(before, before)).toEqual({ totalTokens: 0, credits: 0 });
});
