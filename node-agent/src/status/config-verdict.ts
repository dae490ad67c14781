/** Checks an agent.yaml, the files that it names, and whether this host can run it. */
import { existsSync, readdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { locate, whatFails, type Finding, type Verdict } from "@weiche/shared/files/config-file.ts";
import { checkPrivate } from "@weiche/shared/files/private-file.ts";
import { readerOf } from "@weiche/shared/files/service-reader.ts";
import { readServiceUnit } from "@weiche/shared/files/service-unit.ts";
import { judgeTls, type TlsJudging } from "@weiche/shared/http/tls-check.ts";
import { namesNode, type TlsPaths } from "@weiche/shared/http/tls-files.ts";
import { readToken } from "@weiche/shared/program/ops-access.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { checkAgentText } from "../config/config.ts";
import type { RawAgent } from "../config/config-schema.ts";
import { secretOf } from "../config/config-secrets.ts";
import { readFileSystems } from "../host/file-systems.ts";
import { createGpuReader } from "../host/gpu.ts";
import { MachineTelemetry } from "../host/machine-telemetry.ts";
import { hostMistakes, hostWarnings, type HostFacts } from "./host-warnings.ts";
import { machineWarnings, type MachineFacts } from "./machine-warnings.ts";

/** Checks `text`, the content of `file`. `unit`: the unit that will start the agent, if this host has one. */
export async function judgeAgentFile(
  file: string,
  text: string,
  unit = readServiceUnit("weiche-node-agent.service"),
): Promise<Verdict> {
  const { value, mistakes } = checkAgentText(text);
  if (!value) return { file, mistakes, warnings: [] };
  const baseDir = dirname(resolve(file));
  const host = await hostFacts();
  const reader = readerOf(file, "WEICHE_AGENT_CONFIG", unit);
  const uses = [...tlsUses(value, baseDir)];
  const token = value.ops?.tokenFile === undefined ? undefined : resolve(baseDir, value.ops.tokenFile);
  const found = judgeFiles(uses, token, { nowMs: systemClock.now(), uid: reader.uid, unit });
  const read: (readonly [Finding[0], string])[] = [
    [[], resolve(file)],
    ...uses.flatMap(({ path, paths }) => Object.entries(paths).map(([key, at]) => [[...path, key], at] as const)),
    ...(token === undefined ? [] : [[["ops", "tokenFile"], token] as const]),
  ];
  const warnings = [...hostWarnings(value, baseDir, host), ...machineWarnings(value, baseDir, host), ...found.warnings];
  return {
    file,
    mistakes: [
      ...locate(text, [...hostMistakes(value, host), ...found.mistakes, ...reader.findings(read)]),
      ...exposure(file, value, reader.uid),
    ],
    warnings: locate(text, warnings),
  };
}

interface TlsUse {
  readonly path: Finding[0];
  /** Absolute. */
  readonly paths: Partial<TlsPaths>;
  readonly judgeNames?: TlsJudging["judgeNames"];
}

function* tlsUses({ node, tls, ops }: RawAgent, baseDir: string): Iterable<TlsUse> {
  const judgeNames: TlsJudging["judgeNames"] = (certificate) =>
    namesNode(certificate, node) ? undefined : `lacks the name "${node}", so routers would refuse it`;
  const absolute = (paths: object) =>
    Object.fromEntries(Object.entries(paths).map(([key, at]) => [key, resolve(baseDir, at as string)]));
  if (tls) yield { path: ["tls"], paths: absolute(tls), judgeNames };
  if (ops?.tls) yield { path: ["ops", "tls"], paths: absolute(ops.tls) };
}

/** Checks certificates, keys and the token. A file that this host lacks is a warning. */
function judgeFiles(uses: readonly TlsUse[], token: string | undefined, judging: Omit<TlsJudging, "judgeNames">) {
  const found: { readonly mistakes: Finding[]; readonly warnings: Finding[] } = { mistakes: [], warnings: [] };
  for (const { path, paths, judgeNames } of uses)
    for (const { file, kind, message } of judgeTls(paths, { ...judging, ...(judgeNames && { judgeNames }) }))
      found[kind === "mistake" ? "mistakes" : "warnings"].push([[...path, file], message]);
  if (token === undefined) return found;
  const from = judging.unit?.sources.get(token) ?? token;
  const path = ["ops", "tokenFile"];
  if (!existsSync(from)) found.warnings.push([path, `${from} does not exist`]);
  else found.mistakes.push(...whatFails(path, () => readToken(from, judging.uid)));
  return found;
}

/** Reports a secret in the file itself if others may read the file. */
function exposure(file: string, config: RawAgent, uid: number | "other"): Verdict["mistakes"] {
  const secret = secretOf(config);
  if (secret === undefined) return [];
  return whatFails([], () => checkPrivate(file, secret, uid)).map(([, message]) => ({ line: 0, message }));
}

async function hostFacts(): Promise<HostFacts & MachineFacts> {
  const gpus = await createGpuReader({ clock: systemClock }).readGpus();
  const fileSystem = (path: string) => readFileSystems([{ path, holds: "models" }])[0];
  return { exists: existsSync, isEmpty, fileSystem, gpus, ...(gpus ? {} : { machine: await takeStock() }) };
}

/** Returns false if the path is not a directory or cannot be read. */
function isEmpty(path: string): boolean {
  try {
    return readdirSync(path).length === 0;
  } catch {
    return false;
  }
}

async function takeStock(): Promise<MachineFacts["machine"]> {
  const parts = { clock: systemClock, kept: [], path: process.env["PATH"], events: { machineThreadLost: () => {} } };
  await using telemetry = new MachineTelemetry(parts);
  await telemetry.takeStock().catch(() => {}); // unknown hardware causes no warnings
  return telemetry.machine;
}
