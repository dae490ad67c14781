import fc from "fast-check";
import { Type } from "typebox";
import { describe, expect, test } from "vitest";
import { ApiError } from "../errors.ts";
import { bodyReader, optional, worded } from "./body-reader.ts";

const cat = Type.Object({ kind: Type.Literal("cat"), lives: Type.Integer({ minimum: 1, maximum: 9 }) });
const dog = Type.Object({ kind: Type.Literal("dog"), name: optional(Type.String({ minLength: 1 })) });
const reader = bodyReader(
  Type.Object({
    pet: Type.Union([cat, dog]),
    share: optional(Type.Number({ minimum: 0, maximum: 1 })),
    count: optional(Type.Integer({ minimum: 1 })),
    mood: optional(Type.Union([Type.Enum(["good", "bad"]), Type.Object({ because: Type.String() })])),
    words: optional(Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1, maxItems: 2 })])),
    some: optional(Type.Array(Type.Boolean(), { minItems: 1 })),
    one: Type.Optional(Type.Array(Type.String(), { minItems: 1, maxItems: 1 })),
    free: optional(Type.Object({})),
    even: optional(worded(Type.Integer(), "must be even", (value) => value % 2 === 0)),
  }),
);
const pet = { kind: "cat", lives: 9 };

function mistakeIn(value: unknown): string | undefined {
  try {
    reader.check(value);
    return undefined;
  } catch (error) {
    return (error as ApiError).message;
  }
}

describe("a mistake names its parameter and the expected value", () => {
  test.each<[value: unknown, message: string]>([
    ["text", "The body must be an object."],
    [[], "The body must be an object."],
    [{}, "Invalid 'pet': is required."],
    [{ pet: null }, "Invalid 'pet': is required."],
    [{ pet: 5 }, "Invalid 'pet': must be an object."],
    [{ pet: {} }, "Invalid 'pet.kind': is required."],
    [{ pet: { kind: "cow" } }, "Invalid 'pet.kind': must be one of cat, dog."],
    [{ pet: { kind: "cat" } }, "Invalid 'pet.lives': is required."],
    [{ pet: { kind: "cat", lives: 10 } }, "Invalid 'pet.lives': must be an integer from 1 to 9."],
    [{ pet: { kind: "cat", lives: 1.5 } }, "Invalid 'pet.lives': must be an integer from 1 to 9."],
    [{ pet: { kind: "dog", name: "" } }, "Invalid 'pet.name': must not be empty."],
    [{ pet: { kind: "dog", name: 5 } }, "Invalid 'pet.name': must be a string."],
    [{ pet, share: "1" }, "Invalid 'share': must be a number from 0 to 1."],
    [{ pet, share: 1.1 }, "Invalid 'share': must be a number from 0 to 1."],
    [{ pet, count: 0 }, "Invalid 'count': must be an integer of at least 1."],
    [{ pet, mood: "so so" }, "Invalid 'mood': must be one of good, bad."],
    [{ pet, mood: 5 }, "Invalid 'mood': must be one of good, bad or an object."],
    [{ pet, words: 5 }, "Invalid 'words': must be a string or an array of 1 to 2 items."],
    [{ pet, words: ["a", 5] }, "Invalid 'words[1]': must be a string."],
    [{ pet, words: ["a", "b", "c"] }, "Invalid 'words': must be an array of 1 to 2 items."],
    [{ pet, some: [] }, "Invalid 'some': must be an array of at least 1 item."],
    [{ pet, one: ["a", "b"] }, "Invalid 'one': must be an array of exactly 1 item."],
    [{ pet, some: [null] }, "Invalid 'some[0]': must be true or false."],
    [{ pet, free: [] }, "Invalid 'free': must be an object."],
    [{ pet, even: 3 }, "Invalid 'even': must be even."],
    [{ pet, even: "2" }, "Invalid 'even': must be even."],
  ])("%j: %s", (value, message) => {
    expect(mistakeIn(value)).toBe(message);
  });
});

test("a copy has only the declared fields at every depth, keeps free-form objects, and leaves null out", () => {
  const free = { any: [{ thing: 1 }] };
  const body = { pet: { ...pet, name: "Tom" }, share: null, free, words: ["a"], unknown: 1 };
  expect(reader.declared(body)).toEqual({ pet, free, words: ["a"] });
  expect(() => reader.declared({ ...body, share: 2 })).toThrow(ApiError);
});

test("a mistake is found in every invalid body", () => {
  const wild = fc.anything({ withBigInt: false, maxDepth: 2 });
  const names = ["pet", "share", "count", "mood", "words", "some", "free", "even"];
  const field = fc.tuple(
    fc.constantFrom(...names),
    fc.oneof(wild, fc.array(wild), fc.constant({ kind: "dog", name: 1 })),
  );
  const change = fc.array(field, { maxLength: 2 });
  fc.assert(
    fc.property(change, (fields) => {
      const body: unknown = JSON.parse(JSON.stringify({ pet, ...Object.fromEntries(fields) }));
      expect(mistakeIn(body)).not.toBe("The body is not valid.");
    }),
    { numRuns: 2_000 },
  );
});
