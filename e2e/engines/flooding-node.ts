/**
 * A node that sends a router as much as it accepts, until it is killed: messages of 4 MB above the bounds, reports, and
 * usage records of invented requests. The argument is the router's port for nodes.
 */
import { once } from "node:events";
import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";
import { bootId, helloOf, LinkClient } from "@weiche/router/test/nodes/link-client.ts";

const port = Number(process.argv[2]);
const slots = Array.from({ length: 64 }, (_, n) => ({ name: `s${n}`, state: "SLOT_STATE_ACTIVE", active_model: "m" }));
const records = Array.from({ length: 1_000 }, (_, n) => ({
  request_id: `0190f3c5-7a00-7000-8000-${String(n).padStart(12, "0")}`,
  ...{ attempt: 1, account_id: "a", user_id: "u", key_id: "k", model: "m", source: "USAGE_SOURCE_ENGINE" },
}));

/** Returns 4 MB of empty elements of the field `inner` in the message `outer`. */
function emptyElements(outer: number, inner: number): Buffer {
  const length = (4 << 20) - 16;
  const varint = [0, 7, 14, 21].map((shift) => ((length >> shift) & 127) | (shift < 21 ? 128 : 0));
  return Buffer.concat([Buffer.from([outer, ...varint]), Buffer.alloc(length, Buffer.from([inner, 0]))]);
}

async function flood(name: string, message: Record<string, unknown> | Buffer): Promise<never> {
  for (let boot = 1; ; boot++) {
    using client = new LinkClient(port);
    let hasEnded = false;
    const ended = client.ended.then(() => (hasEnded = true));
    client.say(helloOf(name, bootId(boot)));
    await Promise.race([client.welcomed, ended]);
    while (!hasEnded) {
      client.say(message);
      if (client.call.writableNeedDrain) await Promise.race([once(client.call, "drain").catch(() => {}), ended]);
      else await turn();
    }
    await sleep(20);
  }
}

process.on("disconnect", () => process.exit());
process.send!("flooding");
await Promise.all([
  flood("flood-elements", emptyElements(0x1a, 0x12)),
  flood("flood-reports", { load_report: { slots } }),
  flood("flood-usage", { usage_batch: { batch_id: 1, records } }),
]);
