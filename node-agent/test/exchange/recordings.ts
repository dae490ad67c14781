/** Recorded exchanges with llama-server v0.5.0: a request line, its body if any, and the unchanged answer. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

interface Recording {
  readonly path: string;
  readonly request: Record<string, unknown>;
  readonly status: number;
  readonly body: string;
}

export function readRecording(name: string): Recording {
  const text = recordingText(name);
  const [, path, request, status, body] =
    /^\w+ (\S+)\n(?:(.*)\n)?\nHTTP (\d+)\n(?:[\w-]+: .*\n)*\n([^]*)$/.exec(text) ?? [];
  if (path === undefined) throw new Error(`${name} is not one exchange`);
  const sent = JSON.parse(request ?? "{}") as Record<string, unknown>;
  return { path, request: sent, status: Number(status), body: ended(body!) };
}

export function recordingText(name: string): string {
  return readFileSync(join(import.meta.dirname, "../recordings", `${name}.txt`), "utf8");
}

/** Adds the empty line after the last event, which the files lack. */
function ended(body: string): string {
  return body.startsWith("data:") ? `${body.trimEnd()}\n\n` : body.trimEnd();
}
