import { expect, test } from "vitest";
import { encodingNewsOnce, type Downlink } from "./node-link-codec.ts";

test("a message that goes to many nodes is encoded once, and every other one for itself", () => {
  let encoded = 0;
  const encode = encodingNewsOnce(({ message }) => {
    encoded++;
    return Buffer.from(String(JSON.stringify(message)));
  });
  const heartbeat = (ledger: string): Downlink => ({ $case: "heartbeat", value: { ledger } });
  const [one, other] = [heartbeat("1"), heartbeat("2")];
  const sent = [one, one, one, other, one, heartbeat("1"), undefined].map((message) => String(encode({ message })));
  expect(sent).toEqual([one, one, one, other, one, one, undefined].map((message) => `${JSON.stringify(message)}`));
  expect(encoded).toBe(5);
});
