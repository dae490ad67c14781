import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { linesPerPiece, LineTurns, linesPerTurn } from "./line-turns.ts";

test("a piece of a body with few lines is all of it", () => {
  const bytes = Buffer.from(`${"x".repeat(60_000)}\n{}`);
  expect(new LineTurns().pieceOf(bytes)).toEqual({ end: bytes.length, isFull: false });
});

test("a piece of a body ends after so many lines", () => {
  const { end, isFull } = new LineTurns().pieceOf(Buffer.from("1\r\na\r\n".repeat(1_000)));
  expect({ end, isFull }).toEqual({ end: (linesPerPiece / 2) * "1\r\na\r\n".length, isFull: true });
});

test("extensions of chunks count like lines", () => {
  const { end, isFull } = new LineTurns().pieceOf(Buffer.from(`1${";a=b".repeat(1_000)}\r\na\r\n`));
  expect({ end, isFull }).toEqual({ end: 2 + (linesPerPiece - 1) * ";a=b".length, isFull: true });
});

test("all bodies together get so many lines in a turn, one after the other", async () => {
  const turns = new LineTurns();
  const bytes = Buffer.from("\n".repeat(linesPerPiece));
  const served: number[] = [];
  const serve = (body: number) => {
    served.push(body);
    turns.pieceOf(bytes);
    turns.wait(() => serve(body));
  };
  const bodies = 5;
  for (let body = 0; body < bodies; body++) turns.wait(() => serve(body));
  const perTurn = linesPerTurn / linesPerPiece;
  for (let turn = 1; turn <= bodies; turn++) {
    await nextTurn();
    expect(served).toHaveLength(perTurn * turn);
  }
  expect(served.slice(0, bodies)).toEqual([0, 1, 2, 3, 4]);
  expect(served.slice(bodies)).toEqual([0, 1, 2, 3, 4]);
});
