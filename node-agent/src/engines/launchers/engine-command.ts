/** Address, command line and environment that an engine is started with, and the hash of its configuration. */
import { stopsMax } from "@weiche/shared/convention/generation.ts";
import { socketPathBytesMax } from "@weiche/shared/program/admin-socket.ts";
import { createHash } from "node:crypto";
import { delimiter, dirname } from "node:path";
import type { EngineEndpoint, LauncherSpec } from "../engine.ts";

/**
 * Variables that engines inherit from the agent. Credentials are never inherited, because the engine's `env` sets them.
 */
const inherited =
  /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_[A-Z]+|TZ|TMPDIR|LD_LIBRARY_PATH|CUDA_HOME|CUDA_PATH|NVIDIA_[A-Z_]+|HF_HOME|HF_HUB_CACHE|HF_HUB_OFFLINE|XDG_[A-Z_]+)$/;

/** Variables of every engine, which its own `env` overrides. Not hashed, so a new agent adopts running engines. */
export const agentEnvironment = {
  // The configuration uses nvidia-smi's GPU numbers, and CUDA's default order differs.
  CUDA_DEVICE_ORDER: "PCI_BUS_ID",
  // The service's limit. vLLM's default is 4.
  VLLM_MAX_STOP_STRINGS: String(stopsMax),
  // Turns off llama-server's prompt cache in host memory, because accounts share it and lookup times reveal their
  // prompts.
  LLAMA_ARG_CACHE_RAM: "0",
} as const;

/** The agent's runtime comes first in `PATH`, so that a command `node …` runs on it. */
export function engineEnvironment(
  own: NodeJS.ProcessEnv,
  nodePath: string,
  given: Readonly<Record<string, string>>,
): Record<string, string> {
  const kept = Object.entries(own).filter(([name, value]) => value !== undefined && inherited.test(name));
  const path = [dirname(nodePath), own["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"].join(delimiter);
  return { ...(Object.fromEntries(kept) as Record<string, string>), PATH: path, ...agentEnvironment, ...given };
}

interface ListenPlace {
  readonly port?: number;
  readonly socketPath?: string;
}

/** Replaces `{port}` and `{socket}` in a command. An engine with both is reached by its socket. */
export function fillCommand(command: readonly string[], place: ListenPlace): string[] {
  return command.map((part) =>
    part.replaceAll("{port}", String(place.port)).replaceAll("{socket}", String(place.socketPath)),
  );
}

export function endpointOf({ port, socketPath }: ListenPlace): EngineEndpoint {
  return socketPath === undefined ? { origin: `http://127.0.0.1:${port}` } : { origin: "http://localhost", socketPath };
}

export function checkSocketPath(path: string): string {
  const bytes = Buffer.byteLength(path);
  if (bytes > socketPathBytesMax) {
    throw new Error(
      `socket path ${path} has ${bytes} bytes, at most ${socketPathBytesMax} work: shorten the data directory`,
    );
  }
  return path;
}

export function commandHash(launcher: LauncherSpec): string {
  const env = launcher.kind === "external" ? {} : launcher.env;
  const sorted = Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash("sha256")
    .update(JSON.stringify({ ...launcher, env: sorted }))
    .digest("hex");
}
