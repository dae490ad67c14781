import { expect, test } from "vitest";
import { inOrder } from "./node-order.ts";

test("nodes in trouble are sorted first, the worst at the top, and others by name", () => {
  const nodes = [
    { name: "c", troubles: [] },
    { name: "b", troubles: ["gpu-hot"] },
    { name: "d", troubles: ["silent", "gpu-hot"] },
    { name: "a", troubles: [] },
  ] as const;
  for (const given of [nodes, nodes.toReversed()])
    expect(inOrder(given).map(({ name }) => name)).toEqual(["d", "b", "a", "c"]);
});
