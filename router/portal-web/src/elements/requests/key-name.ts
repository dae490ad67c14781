/** Names of keys in lists of usage and of requests. */
import type { Texts } from "../../messages/messages.ts";

interface NamedKey {
  readonly kind: "api" | "test-chat";
  readonly name: string | null;
  readonly lastFour: string | null;
}

export function keyName({ kind, name }: NamedKey, { t }: Texts): string {
  return kind === "test-chat" ? t.usage.playground : (name ?? t.shell.unknown);
}

/** With its last characters, which tell keys of the same name apart. */
export function longKeyName(key: NamedKey, texts: Texts): string {
  return `${keyName(key, texts)}${key.lastFour ? ` …${key.lastFour}` : ""}`;
}
