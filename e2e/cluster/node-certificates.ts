/** Sets up mutual TLS between a cluster's router and its nodes as an operator does. */
import { dirname, join } from "node:path";
import { makeAuthority, makeCertificate } from "@weiche/router/src/certificates/certificate-folder.ts";
import type { Cluster } from "./cluster.ts";

/** Returns a function for `ClusterOptions.prepare` that makes the certificates and returns the router's settings. */
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

/** Returns the setting `tls` for a node's `agent.yaml`. */
export function tlsOfNode({ directory }: Cluster, node: string): { readonly tls: ReturnType<typeof files> } {
  return { tls: files(folderIn(directory), `node-${node}`) };
}

function folderIn(directory: string): string {
  return join(directory, "certificates");
}

function files(folder: string, name: string) {
  return { cert: join(folder, `${name}.pem`), key: join(folder, `${name}.key`), ca: join(folder, "ca.pem") };
}
