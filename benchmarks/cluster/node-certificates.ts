/** Mutual TLS between the router of a cluster and its nodes, as an operator sets it up. */
import { dirname, join } from "node:path";
import { makeAuthority, makeCertificate } from "@weiche/router/src/certificates/certificate-folder.ts";
import type { Cluster } from "./cluster.ts";

/** For `ClusterOptions.prepare`: makes the certificates, and gives the router its own. */
export function nodeCertificates(nodes: readonly string[]): (dataDir: string) => Promise<object> {
  return async (dataDir) => {
    const folder = folderIn(dirname(dataDir));
    const making = { folder, nowMs: Date.now() };
    makeAuthority(making);
    makeCertificate(making, "router", ["127.0.0.1"]);
    for (const node of nodes) makeCertificate(making, "node", [node]);
    return { nodes: { tls: files(folder, "router-127.0.0.1") } };
  };
}

/** A key of the node's `agent.yaml`. */
export function tlsOfNode({ directory }: Cluster, node: string): { readonly tls: ReturnType<typeof files> } {
  return { tls: files(folderIn(directory), `node-${node}`) };
}

function folderIn(directory: string): string {
  return join(directory, "certificates");
}

function files(folder: string, name: string) {
  return { cert: join(folder, `${name}.pem`), key: join(folder, `${name}.key`), ca: join(folder, "ca.pem") };
}
