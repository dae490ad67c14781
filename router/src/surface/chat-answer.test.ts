import { once } from "node:events";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { expect, test } from "vitest";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { ChatAnswer } from "./chat-answer.ts";

test.each(["before it was asked for", "while it was asked for"])("a client that left %s is gone", async (when) => {
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  if (when === "before it was asked for") response.destroy();
  const answer = new ChatAnswer(response, systemClock);
  const closed = once(answer, "close");
  response.destroy();
  await closed;
  answer.tellState("active");
  expect(response.headersSent).toBe(false);
});
