/** A node whose engine passes its probe and fails every request. Its slot is always the least loaded. */
import { setTimeout as sleep } from "node:timers/promises";
import { journalOf } from "../cluster/engine-journal.ts";
import { simEngine } from "../cluster/sim-node.ts";
import { tlsOfNode } from "../cluster/node-certificates.ts";
import { postFrom, type Attack } from "./attack.ts";

export const failingNode = "failing";
/** A package allows 150 requests a minute. */
const pauseMs = 500;

/** Replaces the status if the connection was closed without one. */
const closed = 0;

export const failingEngine: Attack = {
  name: "an engine that fails every request",
  async prepare(cluster) {
    if (!cluster.agents.has(failingNode)) {
      const engines = [simEngine("sim", { fault: "500:1", journal: journalOf(cluster, failingNode) })];
      await cluster.startAgent(failingNode, { ...tlsOfNode(cluster, failingNode), slots: [{ name: "a", engines }] });
      await cluster.linked();
      await cluster.weiche("prewarm", "sim", "--node", failingNode);
    }
    const { apiKey } = await cluster.account("Failing");
    return { apiKey };
  },
  async run({ apiPort, localAddress, given }, signal) {
    const tally = { answered: 0, failed: 0 };
    const body = '{"model":"sim","messages":[{"role":"user","content":"sim:tokens=2"}]}';
    const headers = { authorization: `Bearer ${given["apiKey"]}` };
    do {
      const status = await postFrom(localAddress, apiPort, "/v1/chat/completions", body, { headers }).catch(
        () => closed,
      );
      if (status === 200) tally.answered++;
      else tally.failed++;
      await sleep(pauseMs, undefined, { signal }).catch(() => {});
    } while (!signal.aborted);
    return tally;
  },
  missing: ({ tally: { answered = 0 } }) => (answered > 0 ? [] : ["no request was answered"]),
  mistakes: ({ tally: { failed = 0 } }) => (failed === 0 ? [] : [`${failed} requests failed`]),
};
