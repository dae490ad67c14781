/**
 * Runs Weiche with the native engine until Ctrl-C and prints the commands that load it by hand:
 * `node benchmarks/load/by-hand.ts [--plain] [--agents N]`.
 */
import { once } from "node:events";
import { parseArgs } from "node:util";
import { startWeiche } from "../peers/weiche.ts";
import { openBench } from "./measure.ts";
import { pin } from "../../e2e/cluster/processes.ts";

const { values } = parseArgs({
  options: { plain: { type: "boolean", default: false }, agents: { type: "string", default: "1" } },
});
await using opened = new AsyncDisposableStack();
const { natives, cores, engine, directory } = await openBench(opened);
const options = { tls: !values.plain, agents: Number(values.agents) };
const weiche = opened.use(await startWeiche({ port: engine.port, model: "load", directory }, options));
pin(weiche.processes, cores.test);
const client = `taskset -c ${cores.load} ${natives.client} --keys ${weiche.keys} --port`;
const cut = `| sed -E 's/,"buckets":[^}]*//g'`;
console.log(
  [
    `processes on core ${cores.test}: ${JSON.stringify(weiche.processes)}; the engine listens on ${engine.port}`,
    "JSON, 64 connections, 5 s after 2 s (the first ones read 4,000 keys from the database):",
    `  ${client} ${weiche.port} --connections 64 --tokens 8 --warmup 2 --seconds 5 ${cut}`,
    "64 streams, a token each 10 ms:",
    `  ${client} ${weiche.port} --connections 64 --stream 1 --tokens 500 --itl 10000 --ramp 0.5 --warmup 1 --seconds 10 ${cut}`,
    "streams as fast as possible:",
    `  ${client} ${weiche.port} --connections 16 --stream 1 --tokens 2000 --warmup 1 --seconds 5 ${cut}`,
    "first byte, one client:",
    `  ${client} ${weiche.port} --connections 1 --stream 1 --tokens 1 --warmup 1 --seconds 5 ${cut}`,
    "the engine alone: the same with --port " + engine.port,
  ].join("\n"),
);
await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
