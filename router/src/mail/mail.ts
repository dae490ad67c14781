/** Sends mail through the configured SMTP server. The server's URL may contain a password, so it is never logged. */
import { createTransport } from "nodemailer";
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { Letter, LetterKind } from "./letters.ts";

export interface MailConfig {
  /** smtps://user:password@host or smtp://host:25. The latter uses STARTTLS if the server supports it. */
  readonly url: string;
  readonly from: string;
}

export type Mail = ReturnType<typeof createMail>;

export interface MailEvents {
  mailSent(kind: LetterKind, durationMs: number): void;
  /** `code`: an error code such as `ECONNECTION`, or the SMTP reply code. */
  mailFailed(kind: LetterKind, code: string): void;
}

const pendingMax = 50;
const timeouts = { connectionTimeout: 5_000, greetingTimeout: 5_000, socketTimeout: 10_000, dnsTimeout: 5_000 };

export function createMail(config: MailConfig, clock: Clock, events: MailEvents) {
  const transport = createTransport({ url: config.url, disableFileAccess: true, disableUrlAccess: true, ...timeouts });
  const pending = new Set<Promise<boolean>>();

  async function deliver(address: string, { kind, subject, text }: Letter): Promise<boolean> {
    const startMs = clock.monotonicMs();
    try {
      // An object, because a comma in a string would separate two recipients.
      await transport.sendMail({ from: config.from, to: { name: "", address }, subject, text });
      events.mailSent(kind, clock.monotonicMs() - startMs);
      return true;
    } catch (error) {
      events.mailFailed(kind, codeOf(error));
      return false;
    }
  }

  return {
    /** Letters that the server has not accepted yet. */
    get pending(): number {
      return pending.size;
    },
    /** Sends a letter and returns whether the server accepted it. Never rejects. It gives up after some seconds. */
    async send(address: string, letter: Letter): Promise<boolean> {
      if (pending.size >= pendingMax) {
        events.mailFailed(letter.kind, "QUEUE");
        return false;
      }
      const sending = deliver(address, letter);
      pending.add(sending);
      return sending.finally(() => pending.delete(sending));
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await Promise.all(pending);
      transport.close();
    },
  };
}

/** Reduces an error to its code. The server's reply may contain the address, and the library's message the credentials. */
function codeOf(error: unknown): string {
  const { responseCode, code } = error as { readonly responseCode?: unknown; readonly code?: unknown };
  if (typeof responseCode === "number") return String(responseCode);
  return typeof code === "string" && /^[A-Z_]{1,40}$/.test(code) ? code : "UNKNOWN";
}
