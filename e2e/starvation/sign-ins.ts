/**
 * Sign-ins with wrong passwords from forty networks at once, for people who do not exist. Meanwhile the owner signs in
 * from a known network and must succeed each time. Good streams must keep their pace while passwords are hashed.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { joinAsOwner, ownerPassword } from "../cluster/portal-owner.ts";
import { postFrom, type Attack } from "./attack.ts";

const networks = 40;
const owner = { email: "signing-in@example.com", password: ownerPassword };
/** The network from which the owner joined and the good streams come. */
const home = "127.0.0.1";
const pauseMs = 500;
const wrong = 'weiche_router_logins_total{outcome="wrong"}';

export const signIns: Attack = {
  name: "sign-ins from forty networks",
  async prepare(cluster) {
    await joinAsOwner(cluster, { name: "Signing in", email: owner.email });
    return {};
  },
  async run(target, signal) {
    const tally = { wrong: 0, refused: 0, ownerIn: 0, ownerRefused: 0 };
    const strangers = Array.from({ length: networks }, async (_, network) => {
      for (let n = 0; !signal.aborted; n++) {
        const claim = { email: `nobody${network}.${n}@example.com`, password: "wrong wrong wrong" };
        const status = await post(target.portalPort, `127.9.${network}.1`, "/api/sign-in", claim, signal).catch(
          () => 0,
        );
        if (status === 401) tally.wrong++;
        else if (!signal.aborted) tally.refused++;
        await sleep(pauseMs);
      }
    });
    do {
      const status = await post(target.portalPort, home, "/api/sign-in", owner);
      if (status === 204) tally.ownerIn++;
      else tally.ownerRefused++;
      await sleep(pauseMs);
    } while (!signal.aborted);
    await Promise.all(strangers);
    return tally;
  },
  missing({ tally: { ownerIn = 0 }, grown }) {
    return ownerIn > 0 && grown(wrong) > 0
      ? []
      : [`the owner signed in ${ownerIn} times, strangers failed ${grown(wrong)}`];
  },
  mistakes({ tally: { ownerRefused = 0 } }) {
    return ownerRefused === 0 ? [] : [`${ownerRefused} of the owner's sign-ins were refused`];
  },
};

/** Resolves with the status. */
function post(port: number, localAddress: string, path: string, body: object, signal?: AbortSignal): Promise<number> {
  const headers = { origin: `http://127.0.0.1:${port}` };
  return postFrom(localAddress, port, path, JSON.stringify(body), { headers, signal });
}
