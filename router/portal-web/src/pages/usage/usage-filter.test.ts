import { expect, test } from "vitest";
import { usageFilter } from "./usage-filter.ts";

const read = (address: string) => {
  const params = new URLSearchParams(address);
  return usageFilter((name) => params.get(name) ?? undefined);
};

test("an address can have a model, a key and a user, and malformed ones are ignored", () => {
  const id = "0198c0de-0000-7000-8000-000000000001";
  expect(read(`model=m&key=${id}&user=${id}`)).toEqual({ model: "m", keyId: id, userId: id });
  expect(read(`model=&key=ci&user=${id}'`)).toEqual({});
  expect(read(`model=${"x".repeat(201)}`)).toEqual({});
});
