import { expect, test } from "vitest";
import { chosenTime, readId, readShort } from "./request-filter.ts";

const nowMs = Date.parse("2026-11-21T12:34:56Z");
const of = (address: string) => {
  const params = new URLSearchParams(address);
  return chosenTime((name) => params.get(name) ?? undefined, nowMs);
};

test.each([
  ["", { choice: "all" }],
  ["time=1e9", { choice: "all" }],
  ["time=24h", { choice: "24h", from: "2026-11-20T13:00:00.000Z" }],
  ["time=7", { choice: "7", from: "2026-11-14T23:00:00.000Z" }],
  ["from=2026-11-02", { choice: "own", fromDay: "2026-11-02", from: "2026-11-01T23:00:00.000Z" }],
  ["to=2026-10-25", { choice: "own", toDay: "2026-10-25", to: "2026-10-25T23:00:00.000Z" }],
  ["from=2026-02-30&time=24h", { choice: "24h", from: "2026-11-20T13:00:00.000Z" }],
])("the address ?%s shows %j", (address, expected) => expect(of(address)).toEqual(expected));

test("malformed ids and long texts are left out", () => {
  const id = "0198c0de-0000-7000-8000-000000000001";
  expect([readId(id), readId(`${id}'`), readId(undefined)]).toEqual([id, undefined, undefined]);
  expect([readShort("m", 1), readShort("mm", 1), readShort("", 1)]).toEqual(["m", undefined, undefined]);
});
