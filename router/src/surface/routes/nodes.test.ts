import { expect, test } from "vitest";
import { asId, type NodeId } from "@weiche/shared/ids.ts";
import type { HandlerDeps } from "./handler-deps.ts";
import { nodeMeant } from "./nodes.ts";

type Fleet = HandlerDeps["fleet"];

/** Makes a fleet of nodes with these names, and one that is gone and was left in maintenance. */
function fleetOf(...names: string[]): Pick<Fleet, "details" | "wishes"> {
  const details = names.map((node) => ({ view: { node: asId<NodeId>(node) } }));
  const wishes = { of: (node: NodeId) => (node === "gone-1" ? { maintenance: true } : undefined) };
  return { details: () => details, wishes } as unknown as Pick<Fleet, "details" | "wishes">;
}

test("a node is found by its name or a unique start of it, and a whole name wins over starts", () => {
  const fleet = fleetOf("gpu-1", "gpu-10", "gpu-2", "cpu-1");
  expect(nodeMeant("gpu-1", fleet)).toBe("gpu-1");
  expect(nodeMeant("gpu-10", fleet)).toBe("gpu-10");
  expect(nodeMeant("c", fleet)).toBe("cpu-1");
  expect(() => nodeMeant("gpu", fleet)).toThrow("several nodes are meant by gpu: gpu-1, gpu-10, gpu-2");
  expect(nodeMeant("gone-1", fleet)).toBe("gone-1");
  expect(nodeMeant("nowhere", fleet)).toBe("nowhere");
});
