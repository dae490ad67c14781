import { expect, test } from "vitest";
import { lineAndSiteOf, networkOf, plainAddress } from "./client-network.ts";

test.each([
  ["192.0.2.7", "192.0.2.0/24"],
  ["192.0.2.255", "192.0.2.0/24"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::1", "2001:db8:1:2::/64"],
  ["2001:0DB8:1:2::", "2001:db8:1:2::/64"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["::", "0:0:0:0::/64"],
  ["1:2:3::4:5:6", "1:2:3:0::/64"],
  ["1:2:3::4:5:6:7", "1:2:3:0::/64"],
  ["1::4:5:6:7:8:9", "1:0:4:5::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["64:ff9b::192.0.2.1", "64:ff9b:0:0::/64"],
  ["1:2:3:4:5:6:192.0.2.1", "1:2:3:4::/64"],
  ["::ffff:192.0.2.7", "192.0.2.0/24"],
  ["somewhere", "somewhere"],
])("the address %s belongs to the network %s", (address, network) => {
  expect(networkOf(address)).toBe(network);
});

test.each([
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["::FFFF:192.0.2.7", "192.0.2.7"],
  ["::ffff:c000:207", "192.0.2.7"],
  ["0:0:0:0:0:ffff:c000:0207", "192.0.2.7"],
  ["::ffff:0:c000:207", "::ffff:0:c000:207"],
  ["2001:db8:ffff::1", "2001:db8:ffff::1"],
  ["::ffff", "::ffff"],
  ["192.0.2.7", "192.0.2.7"],
  ["an ffff that is no address", "an ffff that is no address"],
])("the address %s is the client %s", (address, plain) => {
  expect(plainAddress(address)).toBe(plain);
});

test.each([
  ["192.0.2.7", ["192.0.2.7"]],
  ["::ffff:192.0.2.7", ["192.0.2.7"]],
  ["2001:db8:1:2:3:4:5:6", ["2001:db8:1:2::/64", "2001:db8:1::/48"]],
  ["2001:db8::1", ["2001:db8:0:0::/64", "2001:db8:0::/48"]],
  ["somewhere", ["somewhere"]],
])("requests of %s are counted for %j", (address, counted) => {
  expect(lineAndSiteOf(address)).toEqual(counted);
});
