/**
 * Runs in its own network namespace, whose only way out is an interface that counts packets. Starts a cluster, sends it
 * requests that name outside addresses and host names, and prints the number of packets.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { openCluster, sendAll } from "./foreign-addresses.ts";

const ip = (...args: string[]) => execFileSync("ip", args, { stdio: "inherit" });
ip("link", "set", "lo", "up");
ip("link", "add", "out", "type", "veth", "peer", "name", "hole");
for (const end of ["out", "hole"]) {
  writeFileSync(`/proc/sys/net/ipv6/conf/${end}/disable_ipv6`, "1"); // IPv6 would announce the interface
  ip("link", "set", end, "up");
}
ip("addr", "add", "10.9.9.1/24", "dev", "out");
ip("route", "add", "default", "via", "10.9.9.2");
ip("neigh", "add", "10.9.9.2", "lladdr", "02:00:00:00:00:02", "dev", "out");

function sentPackets(): number {
  const line = readFileSync("/proc/net/dev", "utf8").match(/^\s*out:(.*)$/m)![1]!;
  return Number(line.trim().split(/\s+/)[9]);
}

{
  await using cluster = await openCluster();
  const { apiKey } = await cluster.account();
  let answered = 0;
  for (const foreign of ["http://10.1.2.3:8080/x.json", "https://names.example.org/x.json"])
    answered += Object.keys(await sendAll(cluster, apiKey, foreign)).length;
  await sleep(10_000); // time for background requests, repeated DNS queries and telemetry
  const sent = sentPackets();
  await fetch("http://10.1.2.3:8080/", { signal: AbortSignal.timeout(500) }).catch(() => {});
  console.log(JSON.stringify({ answered, sent, countsWork: sentPackets() > sent }));
}
