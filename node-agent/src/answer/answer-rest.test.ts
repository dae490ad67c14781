import { expect, test } from "vitest";
import { TextRest } from "./answer-rest.ts";

test.each(["x", "ä", "語", "😀"])(
  "the memory of the rest of a text is counted in bytes while it is written: %s",
  (character) => {
    const text = character.repeat(70_001);
    const rest = new TextRest(text);
    let left = Buffer.byteLength(text);
    expect(rest.heldBytes).toBe(left);
    let written = "";
    for (const piece of rest) {
      written += piece;
      expect(rest.heldBytes).toBe((left -= Buffer.byteLength(piece)));
      expect(piece.isWellFormed()).toBe(true);
    }
    expect([written === text, left]).toEqual([true, 0]);
  },
);
