/** The file in which `npm start` stores key and addresses, for its user and its next start. */
import { readFileSync, writeFileSync } from "node:fs";

export interface Demo {
  readonly apiKey: string;
  readonly baseUrl: string;
  readonly portalUrl: string;
}

export function writeDemo(file: string, demo: Demo): void {
  writeFileSync(file, `${JSON.stringify(demo, null, 2)}\n`, { mode: 0o600 });
}

/**
 * Returns the key of an earlier start, or undefined if there is none or the file is damaged. Then a new key is made.
 */
export function readDemoKey(file: string): string | undefined {
  try {
    const { apiKey } = JSON.parse(readFileSync(file, "utf8")) as Partial<Demo>;
    return typeof apiKey === "string" && /^[\w-]+$/.test(apiKey) ? apiKey : undefined;
  } catch {
    return undefined;
  }
}
