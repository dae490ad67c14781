import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { LineTurns, linesPerTurn } from "./line-turns.ts";

test("the piece of a body with few lines is the whole body", () => {
  const bytes = Buffer.from(`${"x".repeat(60_000)}\n{}`);
  expect(new LineTurns().pieceOf(bytes)).toBe(bytes.length);
});

test("a piece of a body ends after the lines of one turn", () => {
  const end = new LineTurns().pieceOf(Buffer.from("1\r\na\r\n".repeat(1_000)));
  expect(end).toBe((linesPerTurn / 2) * "1\r\na\r\n".length);
});

test("extensions of chunks count like lines", () => {
  const end = new LineTurns().pieceOf(Buffer.from(`1${";a=b".repeat(1_000)}\r\na\r\n`));
  expect(end).toBe(2 + (linesPerTurn - 1) * ";a=b".length);
});

test("all bodies together get the lines of one turn, one body after the other [D5]", async () => {
  const turns = new LineTurns();
  const perTurn = 4;
  const bytes = Buffer.from("\n".repeat(linesPerTurn / perTurn));
  const served: number[] = [];
  const serve = (body: number) => {
    served.push(body);
    turns.pieceOf(bytes);
    turns.wait(() => serve(body));
  };
  const bodies = 10;
  for (let body = 0; body < bodies; body++) turns.wait(() => serve(body));
  for (let turn = 1; turn <= bodies; turn++) {
    await nextTurn();
    expect(served).toHaveLength(perTurn * turn);
  }
  const inOrder = Array.from({ length: bodies }, (_, body) => body);
  expect(served.slice(0, bodies)).toEqual(inOrder);
  expect(served.slice(bodies, 2 * bodies)).toEqual(inOrder);
});

test("small pieces use up the lines of a turn, and the next turn starts with all lines", async () => {
  const turns = new LineTurns();
  const bytes = Buffer.from("\n".repeat(linesPerTurn / 4));
  for (let turn = 0; turn < 3; turn++) {
    for (let piece = 0; piece < 4; piece++) {
      expect(turns.isOver).toBe(false);
      turns.pieceOf(bytes);
    }
    expect(turns.isOver).toBe(true);
    await nextTurn();
  }
});
