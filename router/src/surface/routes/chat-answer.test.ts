import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { expect, test } from "vitest";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { ChatAnswer } from "./chat-answer.ts";

test.each(["before it was asked for", "while it was asked for"])(
  "an answer is closed if its client leaves %s",
  async (when) => {
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    if (when === "before it was asked for") response.destroy();
    const answer = new ChatAnswer(response, systemClock);
    const closed = new Promise<boolean>((resolve) => answer.onClosed(resolve));
    response.destroy();
    expect(await closed).toBe(false);
    answer.placed("active", millicredits(1n));
    expect(response.headersSent).toBe(false);
  },
);
