import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { bootId } from "./link-client.ts";
import { node, NodeLinkRig } from "./node-link-rig.ts";

let rig: NodeLinkRig;
beforeEach(async () => {
  rig = await NodeLinkRig.open();
});
afterEach(async () => {
  await rig[Symbol.asyncDispose]();
});

describe("other tools find their way", () => {
  const buf = join(import.meta.dirname, "../../../node_modules/.bin/buf");
  const curl = async (...args: string[]) =>
    (await promisify(execFile)(buf, ["curl", "--protocol", "grpc", "--http2-prior-knowledge", ...args])).stdout;
  const url = (path = "") => `http://127.0.0.1:${rig.link.address.port}${path}`;

  test("reflection lists every method", async () => {
    const methods = await curl("--list-methods", url());
    expect(methods).toContain("weiche.node.v1.NodeControlService/Link");
    expect(methods).toContain("grpc.health.v1.Health/Check");
  });

  test("a link can be spoken to by reflection alone", async () => {
    const messages = [
      { hello: { node, bootId: bootId(1), slots: [{ name: "s", models: ["m"] }] } },
      { usageBatch: { batchId: 3 } },
    ];
    const answers = await curl(
      "-d",
      messages.map((message) => JSON.stringify(message)).join("\n"),
      url("/weiche.node.v1.NodeControlService/Link"),
    );
    expect(answers).toContain('"routerId": "router-1"');
    expect(answers).toMatch(/"usageAck"/);
  });

  test("health says whether links are taken", async () => {
    expect(await curl("-d", "{}", url("/grpc.health.v1.Health/Check"))).toContain('"SERVING"');
    rig.link.goodbye();
    expect(await curl("-d", "{}", url("/grpc.health.v1.Health/Check"))).toContain('"NOT_SERVING"');
  });

  test("the health service's descriptors are those of the package in use", async () => {
    const proto = join(import.meta.dirname, "../../../node_modules/grpc-health-check/proto");
    const args = ["build", proto, "-o", "-", "--as-file-descriptor-set", "--exclude-source-info"];
    const { stdout } = await promisify(execFile)(buf, args, { encoding: "buffer" });
    expect(stdout.equals(readFileSync(join(import.meta.dirname, "../../src/nodes/health.binpb")))).toBe(true);
  });
});
