import type { IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { createClientAddress } from "./client-address.ts";

function from(remoteAddress: string, forwarded?: string): IncomingMessage {
  const headers = forwarded === undefined ? {} : { "x-forwarded-for": forwarded };
  return { socket: { remoteAddress }, headers } as unknown as IncomingMessage;
}

const proxies = ["10.0.0.1", "192.168.0.0/16", "2001:db8::/32"];
const cases: [name: string, trusted: string[], request: IncomingMessage, address: string][] = [
  ["without trusted proxies the header is ignored", [], from("203.0.113.9", "1.1.1.1"), "203.0.113.9"],
  [
    "a client that is not a trusted proxy cannot choose its address",
    proxies,
    from("203.0.113.9", "1.1.1.1"),
    "203.0.113.9",
  ],
  ["a trusted proxy names its client", proxies, from("10.0.0.1", "203.0.113.9"), "203.0.113.9"],
  ["entries that the client wrote are ignored", proxies, from("10.0.0.1", "1.1.1.1, 203.0.113.9"), "203.0.113.9"],
  ["a chain of trusted proxies names its client", proxies, from("10.0.0.1", "203.0.113.9, 192.168.3.4"), "203.0.113.9"],
  ["an IPv6 proxy names its IPv6 client", proxies, from("2001:db8::7", "2001:4860::1"), "2001:4860::1"],
  ["an IPv4 proxy is trusted on an IPv6 socket", proxies, from("::ffff:10.0.0.1", "203.0.113.9"), "203.0.113.9"],
  ["a proxy without the header is the client", proxies, from("10.0.0.1"), "10.0.0.1"],
  ["a proxy with an empty header is the client", proxies, from("10.0.0.1", " "), "10.0.0.1"],
  ["a port after the address is ignored", proxies, from("10.0.0.1", "1.1.1.1, 203.0.113.9:51234"), "203.0.113.9"],
  [
    "ports in a chain of proxies are ignored",
    proxies,
    from("10.0.0.1", "[2001:4860::1]:9, [2001:db8::7]:80"),
    "2001:4860::1",
  ],
  [
    "an IPv4-mapped IPv6 address is the IPv4 address",
    proxies,
    from("10.0.0.1", "[::ffff:203.0.113.9]:80"),
    "203.0.113.9",
  ],
  ["an entry without an address gives an unknown client", proxies, from("10.0.0.1", "1.1.1.1, unknown"), "unknown"],
  ["an empty last entry gives an unknown client", proxies, from("10.0.0.1", "1.1.1.1,"), "unknown"],
  [
    "an entry without an address before a chain of proxies gives an unknown client",
    proxies,
    from("10.0.0.1", "<script>, 192.168.3.4:80"),
    "unknown",
  ],
  ["entries before the client are not read", proxies, from("10.0.0.1", "unknown, 203.0.113.9"), "203.0.113.9"],
  [
    "if the header has only proxies, the first of them is the client",
    proxies,
    from("10.0.0.1", "192.168.0.2"),
    "192.168.0.2",
  ],
];
test.each(cases)("%s", (_name, trusted, request, address) => {
  expect(createClientAddress(trusted)(request)).toBe(address);
});

test("an entry without an address is reported with the proxy that wrote it", () => {
  const unread: string[] = [];
  const addressOf = createClientAddress(proxies, (proxy, entry) => unread.push(`${proxy}: ${entry}`));
  for (const forwarded of ["1.1.1.1, -", "client.example, 192.168.3.4", "203.0.113.9:80"])
    addressOf(from("10.0.0.1", forwarded));
  expect(unread).toEqual(["10.0.0.1:  -", "192.168.3.4: client.example"]);
});

test.each(["proxy.example", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/x", ""])(
  "the trusted proxy %j is refused at the start",
  (network) => {
    expect(() => createClientAddress([network])).toThrow(/trustedProxies/);
  },
);
