import { asId, type AccountId } from "@weiche/shared/ids.ts";
import { expect, test } from "vitest";
import { UnreadAnswers } from "./unread-answers.ts";

const account = (n: number) => asId<AccountId>(`account-${n}`);
const MiB = 1 << 20;

/** The most that is written at once. */
const piece = MiB / 16;

/** Opens answers of the account and fills each up to its limit. Returns what they hold, in MiB. */
function fill(all: UnreadAnswers, accountId: AccountId, answers: number): number {
  const before = all.bytes;
  for (let n = 0; n < answers; n++) {
    const answer = all.open(accountId);
    for (let bytes = piece; !answer.isFull; bytes += piece) answer.is(bytes);
  }
  return (all.bytes - before) / MiB;
}

test("one answer holds at most 16 MiB [D3]", () => {
  expect(fill(new UnreadAnswers(), account(1), 1)).toBe(16 + 1 / 16);
});

test("one account holds at most a quarter of all memory, however many answers it leaves unread [D3]", () => {
  // One piece of each answer may always wait.
  expect(fill(new UnreadAnswers(), account(1), 20)).toBeLessThan(64 + 20 / 16);
});

test("when six accounts leave as much unread as they may, a long answer of another account still finds room [B8]", () => {
  const all = new UnreadAnswers();
  for (let n = 0; n < 6; n++) fill(all, account(n), 20);
  expect(all.bytes / MiB).toBeLessThan(256);
  const other = all.open(account(99));
  other.is(8 * MiB);
  expect(other.isFull).toBe(false);
});

test("an answer that is read gives its memory back, also to the account's other answers", () => {
  const all = new UnreadAnswers();
  const answers = Array.from({ length: 6 }, () => all.open(account(1)));
  for (const answer of answers) answer.is(12 * MiB);
  expect(answers.map(({ isFull }) => isFull)).toEqual(Array(6).fill(true));
  for (const answer of answers.slice(1)) answer.is(0);
  expect(answers[0]!.isFull).toBe(false);
  answers[0]!.is(0);
  expect(all.bytes).toBe(0);
});

test("an answer with no unread bytes may always continue", () => {
  const all = new UnreadAnswers();
  for (let n = 0; n < 50; n++) fill(all, account(n), 10);
  expect(all.open(account(1)).isFull).toBe(false);
});
