import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { bootId } from "./link-client.ts";
import { node, NodeLinkRig } from "./node-link-rig.ts";

test("a general gRPC client speaks to the link with the protocol's files", async () => {
  await using rig = await NodeLinkRig.open();
  const messages = [
    { hello: { node, bootId: bootId(1), slots: [{ name: "s", models: ["m"] }] } },
    { usageBatch: { batchId: 3 } },
  ];
  const root = join(import.meta.dirname, "../../..");
  const { stdout } = await promisify(execFile)(join(root, "node_modules/.bin/buf"), [
    ...["curl", "--protocol", "grpc", "--http2-prior-knowledge", "--schema", join(root, "proto")],
    ...["-d", messages.map((message) => JSON.stringify(message)).join("\n")],
    `http://127.0.0.1:${rig.link.address.port}/weiche.node.v1.NodeControlService/Link`,
  ]);
  expect(stdout).toContain('"routerId": "router-1"');
  expect(stdout).toMatch(/"usageAck"/);
});
