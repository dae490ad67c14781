/** A mail server that keeps its mails. It can refuse receivers, hang, or cut connections. */
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";

interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  readonly subject: string;
  readonly body: string;
  /** The message as the server received it. */
  readonly raw: string;
}

export interface SmtpServer extends AsyncDisposable {
  readonly port: number;
  readonly mails: readonly ReceivedMail[];
  /** The credentials with which senders signed in. */
  readonly credentials: readonly string[];
  mood: "friendly" | "refuses-senders" | "refuses-receivers" | "silent" | "cuts";
}

export async function startSmtpServer(): Promise<SmtpServer> {
  const mails: ReceivedMail[] = [];
  const credentials: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    if (smtp.mood === "cuts") return void socket.destroy();
    if (smtp.mood === "silent") return;
    converse(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const smtp: SmtpServer = {
    port: (server.address() as AddressInfo).port,
    mails,
    credentials,
    mood: "friendly",
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };

  function converse(socket: Socket): void {
    let [buffer, data, from] = ["", undefined as string[] | undefined, ""];
    let to: string[] = [];
    const say = (line: string) => socket.write(`${line}\r\n`);
    const commands: Readonly<Record<string, (rest: string) => unknown>> = {
      EHLO: () => say("250-here\r\n250 AUTH PLAIN"),
      AUTH(rest) {
        const given = Buffer.from(rest.split(" ")[1]!, "base64").toString();
        credentials.push(given);
        say(smtp.mood === "refuses-senders" ? `535 not with ${given.split("\0")[2]}` : "235 welcome");
      },
      MAIL: (rest) => ((from = rest), (to = []), say("250 ok")),
      RCPT: (rest) => (smtp.mood === "refuses-receivers" ? say(`550 no ${rest} here`) : (to.push(rest), say("250 ok"))),
      DATA: () => ((data = []), say("354 go on")),
      RSET: () => say("250 ok"),
      QUIT: () => (say("221 bye"), socket.end()),
    };
    const line = (text: string) => {
      if (data === undefined) {
        const command = commands[text.slice(0, 4).toUpperCase()];
        return command ? command(text.slice(5)) : say("502 what?");
      }
      if (text !== ".") return data.push(text.replace(/^\./, ""));
      mails.push(read(from, to, data));
      data = undefined;
      say("250 taken");
    };
    say("220 here");
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      buffer += chunk;
      for (let end = buffer.indexOf("\r\n"); end >= 0; end = buffer.indexOf("\r\n")) {
        const text = buffer.slice(0, end);
        buffer = buffer.slice(end + 2);
        line(text);
      }
    });
  }
  return smtp;
}

function read(from: string, to: readonly string[], lines: readonly string[]): ReceivedMail {
  const raw = lines.join("\n");
  const end = raw.indexOf("\n\n");
  const head = raw.slice(0, end).replace(/\n[ \t]+/g, " ");
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, "im").exec(head)?.[1] ?? "";
  const encoded = raw.slice(end + 2);
  const isBase64 = field("Content-Transfer-Encoding") === "base64";
  const body = isBase64 ? Buffer.from(encoded, "base64").toString() : decodeQuoted(encoded.replace(/=\n/g, ""), "=");
  // RFC 2047: the space between two encoded words is ignored.
  const subject = field("Subject")
    .replace(/\?=\s+=\?/g, "?==?")
    .replace(/=\?UTF-8\?([QB])\?([^?]*)\?=/gi, (_all, kind: string, word: string) =>
      kind.toUpperCase() === "B"
        ? Buffer.from(word, "base64").toString()
        : decodeQuoted(word.replaceAll("_", " "), "="),
    );
  return { from, to, subject, body, raw };
}

function decodeQuoted(text: string, mark: string): string {
  return decodeURIComponent(text.replaceAll("%", "%25").replace(new RegExp(`${mark}([0-9A-F]{2})`, "g"), "%$1"));
}
