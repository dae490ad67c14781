/** Opens a real router's end of the data connections with a linked agent in plain buffers. */
import { expect } from "vitest";
import { linked, openRouterEnd } from "./link-ends.ts";
import { PlainPeer } from "./plain-peer.ts";

/** `onOpened` answers requests. The test fails if the router broke a rule of the wire. */
export async function openPlainAgent(onOpened: PlainPeer["onOpened"] = () => {}) {
  const router = await openRouterEnd();
  const agent = await PlainPeer.dial(router.data.address.port);
  agent.onOpened = onOpened;
  await linked(router);
  return {
    router,
    agent,
    async [Symbol.asyncDispose]() {
      expect(agent.broken).toEqual([]);
      agent.destroy();
      await router[Symbol.asyncDispose]();
    },
  };
}
