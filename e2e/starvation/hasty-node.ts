/**
 * A node with a valid certificate that connects, completes the handshake, closes, and begins again, at full speed and
 * from several addresses.
 */
import { existsSync, readFileSync } from "node:fs";
import { connect as connectTls } from "node:tls";
import { dataAlpn } from "@weiche/shared/node-protocol.ts";
import { tlsOfNode } from "../cluster/node-certificates.ts";
import type { Attack } from "./attack.ts";
import { portOf } from "./ports.ts";

export const hastyNode = "hasty";
const addresses = 4;
const connectionsAtOnce = 32;
/** What the certificate may have at each port, and what each address may have besides until it is refused before TLS. */
const handshakesMax = (seconds: number) =>
  2 * (128 + 5 * seconds) + addresses * (100 + 5 * seconds + connectionsAtOnce);

export const hastyHandshakes: Attack = {
  name: "a node that connects again and again",
  async prepare(cluster) {
    const { tls } = tlsOfNode(cluster, hastyNode);
    return { nodes: portOf(cluster, "nodes"), data: portOf(cluster, "data"), ...(existsSync(tls.ca) && tls) };
  },
  async run({ given: { nodes, data, ca, key, cert } }, signal) {
    const tally = { connections: 0, handshakes: 0, seconds: 0 };
    if (ca === undefined) return tally;
    const startedAtMs = performance.now();
    const files = { ca: readFileSync(ca), key: readFileSync(key!), cert: readFileSync(cert!) };
    const lines = Array.from({ length: connectionsAtOnce }, async (_, line) => {
      const [port, alpn] = line % 2 === 0 ? [nodes, "h2"] : [data, dataAlpn];
      const from = { host: "127.0.0.1", localAddress: `127.15.${line % addresses}.1`, port: Number(port) };
      while (!signal.aborted) {
        tally.connections++;
        const socket = connectTls({ ...from, ...files, ALPNProtocols: [alpn!] });
        // The router sends a ticket once it has seen the certificate.
        socket.once("session", () => (tally.handshakes++, socket.destroy())).on("error", () => {});
        await new Promise((resolve) => socket.once("close", resolve));
      }
    });
    await Promise.all(lines);
    tally.seconds = (performance.now() - startedAtMs) / 1_000;
    return tally;
  },
  missing: ({ tally: { handshakes = 0 } }) => (handshakes > 0 ? [] : ["no handshake was completed"]),
  mistakes({ tally: { handshakes = 0, seconds = 0 } }) {
    return handshakes <= handshakesMax(seconds) ? [] : [`${handshakes} handshakes in ${seconds} s`];
  },
};
