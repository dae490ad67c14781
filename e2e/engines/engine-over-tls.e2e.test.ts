/** Tests an external engine at an `https:` address, as the agent's client reaches it. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { HttpConnection } from "@weiche/node-agent/src/http1/connection.ts";
import { issueAuthority, issueCertificate } from "@weiche/router/src/certificates/issue.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { expect, test } from "vitest";

function ask(origin: string): Promise<string> {
  const connection = new HttpConnection({ origin }, systemClock);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let text = "";
  connection.send(
    { method: "POST", path: "/v1/chat/completions", body: Buffer.from("{}"), keep: false },
    { onHead: () => {}, onBody: (part) => (text += part.toString()), onEnd: () => resolve(text), onLost: reject },
  );
  return promise.finally(() => connection.close());
}

test("the agent trusts an engine whose certificate names it and has a known authority, and uses HTTP/1.1", async () => {
  const validity = { fromMs: Date.now(), days: 2 };
  const ca = issueAuthority(validity);
  const authority = { cert: new X509Certificate(ca.cert), key: createPrivateKey(ca.key) };
  const identity = issueCertificate(authority, ["localhost"], validity);
  const server = createServer({ ...identity, ALPNProtocols: ["h2", "http/1.1"] }, ({ httpVersion }, response) =>
    response.end(`HTTP/${httpVersion}`),
  );
  server.on("tlsClientError", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const known = getCACertificates("default");
  try {
    await expect(ask(`https://localhost:${port}`)).rejects.toThrow(/certificate/);
    setDefaultCACertificates([...known, ca.cert]);
    expect(await ask(`https://localhost:${port}`)).toBe("HTTP/1.1");
    await expect(ask(`https://127.0.0.1:${port}`)).rejects.toThrow(/IP/);
  } finally {
    setDefaultCACertificates(known);
    server.close();
  }
});
