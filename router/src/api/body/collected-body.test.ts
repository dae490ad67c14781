import fc from "fast-check";
import { expect, test } from "vitest";
import { CollectedBody } from "./collected-body.ts";

test("a body is collected unchanged, however it is cut, with or without an announced length or prepared memory", () => {
  const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 30 });
  fc.assert(
    fc.property(pieces, fc.boolean(), fc.nat(30), (cut, isAnnounced, placeAt) => {
      const all = Buffer.concat(cut);
      const body = new CollectedBody(isAnnounced ? all.length : undefined);
      cut.forEach((piece, at) => {
        body.add(Buffer.from(piece));
        if (at === placeAt) body.makePlace(all.length);
      });
      expect(body.bytes).toBe(all.length);
      expect(body.whole().equals(all)).toBe(true);
    }),
  );
});

test.each([undefined, 1_000])("pieces are copied, so that no piece is kept (announced: %s) [D1]", (announced) => {
  const body = new CollectedBody(announced);
  const pieces = Array.from({ length: 1_000 }, () => Buffer.from("a"));
  for (const piece of pieces) body.add(piece);
  for (const piece of pieces) piece.fill("b");
  expect(body.whole().toString()).toBe("a".repeat(1_000));
});

test("an announced body takes a megabyte at first, and the rest once more than that has come", () => {
  const body = new CollectedBody(20 << 20);
  const taken: number[] = [];
  for (const bytes of [1, (1 << 20) - 1, 1]) {
    body.add(Buffer.alloc(bytes));
    taken.push(body.whole().buffer.byteLength);
  }
  expect(taken).toEqual([1 << 20, 1 << 20, 20 << 20]);
});
