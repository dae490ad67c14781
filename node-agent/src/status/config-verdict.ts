/** Checks an agent.yaml, the files that it names, and whether this host can run it. */
import { existsSync, readdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { locate, whatFails, type Finding, type Verdict } from "@weiche/shared/files/config-file.ts";
import { checkPrivate } from "@weiche/shared/files/private-file.ts";
import { judgeTls } from "@weiche/shared/http/tls-check.ts";
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

/** Checks `text`, the content of `file`. */
export async function judgeAgentFile(file: string, text: string): Promise<Verdict> {
  const { value, mistakes } = checkAgentText(text);
  if (!value) return { file, mistakes, warnings: [] };
  const baseDir = dirname(resolve(file));
  const host = await hostFacts();
  const tls = judgeFiles(value, baseDir, systemClock.now());
  const warnings = [...hostWarnings(value, baseDir, host), ...machineWarnings(value, baseDir, host), ...tls.warnings];
  return {
    file,
    mistakes: [...locate(text, [...hostMistakes(value, host), ...tls.mistakes]), ...exposure(file, value)],
    warnings: locate(text, warnings),
  };
}

/** When root runs the check, it assumes the agent's user, which may read root's files through its group. */
const uid: number | "other" = process.geteuid?.() || "other";

/** Checks certificates, keys and the token. A file that this host lacks is a warning. */
function judgeFiles(config: RawAgent, baseDir: string, nowMs: number) {
  const { node, tls, ops } = config;
  const found: { readonly mistakes: Finding[]; readonly warnings: Finding[] } = { mistakes: [], warnings: [] };
  const judgeNames: NonNullable<Parameters<typeof judgeTls>[1]["judgeNames"]> = (certificate) =>
    namesNode(certificate, node) ? undefined : `lacks the name "${node}", so routers would refuse it`;
  const uses = [
    { path: ["tls"], paths: tls, judging: { nowMs, uid, judgeNames } },
    { path: ["ops", "tls"], paths: ops?.tls, judging: { nowMs, uid } },
  ];
  for (const { path, paths, judging } of uses) {
    if (!paths) continue;
    const absolute = Object.fromEntries(Object.entries(paths).map(([key, at]) => [key, resolve(baseDir, at)]));
    for (const { file, kind, message } of judgeTls(absolute as unknown as TlsPaths, judging))
      found[kind === "mistake" ? "mistakes" : "warnings"].push([[...path, file], message]);
  }
  if (ops?.tokenFile === undefined) return found;
  const tokenFile = resolve(baseDir, ops.tokenFile);
  const path = ["ops", "tokenFile"];
  if (!existsSync(tokenFile)) found.warnings.push([path, `${tokenFile} does not exist`]);
  else found.mistakes.push(...whatFails(path, () => readToken(tokenFile, uid)));
  return found;
}

/** Reports a secret in the file itself if others may read the file. */
function exposure(file: string, config: RawAgent): Verdict["mistakes"] {
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
