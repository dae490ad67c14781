import { expect, test, vi } from "vitest";
import { nodeRequestsMax } from "@weiche/shared/node-protocol.ts";
import { readNodeRequests } from "./node-requests.ts";

const one = {
  requestId: "r",
  attempt: 1,
  model: "m",
  slot: "s",
  state: "answering",
  completionTokens: 7,
  generatingMs: 1,
};

test("reads the longest list that an agent sends", () => {
  const list = Array.from({ length: nodeRequestsMax }, () => one);
  expect(readNodeRequests(JSON.stringify(list))).toEqual(list);
});

test("refuses 4 MB of small values without parsing them", () => {
  const parse = vi.spyOn(JSON, "parse");
  for (const hostile of ["{},", "[],", "1,", '"",'])
    expect(() => readNodeRequests(`[${hostile.repeat((4 << 20) / hostile.length)}1]`)).toThrow("not well-formed");
  expect(() => readNodeRequests("[".repeat(1 << 20))).toThrow("not well-formed");
  expect(parse).not.toHaveBeenCalled();
  parse.mockRestore();
});
