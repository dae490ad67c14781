/** Handlers of the operators' console: links, sessions, and the streams of its pages. */
import { hostname } from "node:os";
import { version } from "@weiche/shared/program/version.ts";
import { instantText } from "../../db/database.ts";
import { RequestError } from "../../rights/request-error.ts";
import type { consoleContract, ConsolePage } from "../contract/console.ts";
import type { Handlers } from "../server/add-routes.ts";
import { accountItems, type AccountsWish } from "./console/accounts.ts";
import { createSlotItems, nodeItems } from "./console/items.ts";
import { viewPipeline } from "./console/pipeline.ts";
import { viewCapacity } from "./console/capacity.ts";
import type { ConsoleParts, HandlerDeps } from "./handler-deps.ts";
import { sendLive, type Look } from "./console/live-stream.ts";

/** Maximum number of open pages of all operators together. */
const streamsMax = 64;
/** Intervals for finding changes in the router's memory, and in the database. */
const [memoryEveryMs, databaseEveryMs] = [250, 2_000];

export function consoleHandlers(deps: HandlerDeps): Handlers<typeof consoleContract> {
  const { clock } = deps;
  let streams = 0;
  const parts = (): ConsoleParts => {
    if (!deps.console)
      throw new RequestError("conflict", "the console is off: set listen.console (docs/configuration.md)");
    return deps.console;
  };
  const viewSession = (endsAtMs: number) => ({ endsAt: instantText(endsAtMs), router: hostname(), version });
  return {
    makeConsoleLink() {
      const { url, sessions } = parts();
      const { code, expiresAtMs } = sessions.makeCode();
      return { url: `${url}/sign-in#${code}`, expiresAt: instantText(expiresAtMs) };
    },

    openConsole(call) {
      const opened = parts().sessions.exchange(call.body.code);
      if (!opened)
        throw new RequestError(
          "login_failed",
          "the link is wrong, was used already, or is over a minute old: run `weiche console` again",
        );
      call.setSession(opened.token, (opened.endsAtMs - clock.now()) / 1000);
      return viewSession(opened.endsAtMs);
    },

    showConsole: ({ credential }) => viewSession(parts().sessions.find(credential!)!.endsAtMs),

    closeConsole(call) {
      parts().sessions.end(call.credential!);
      call.clearSession();
    },

    async watchConsole(call) {
      if (streams >= streamsMax)
        throw new RequestError("too_many_requests", "too many pages of the console are open: close some");
      streams++;
      try {
        await sendLive(call, clock, lookOf(call.query));
      } finally {
        streams--;
      }
    },

    startCapacity() {
      if (!parts().capacity.start()) throw new RequestError("conflict", "a simulation is running already");
    },

    cancelCapacity: () => parts().capacity.cancel(),
  };

  function lookOf({ show, ...wish }: AccountsWish & { readonly show: ConsolePage }): Look {
    switch (show) {
      case "nodes":
        return { everyMs: memoryEveryMs, read: () => nodeItems(deps.fleet) };
      case "slots":
        return { everyMs: memoryEveryMs, read: createSlotItems(deps) };
      case "accounts":
        return { everyMs: databaseEveryMs, read: () => accountItems(deps, wish) };
      case "capacity":
        return {
          everyMs: memoryEveryMs,
          read: () => new Map([["capacity", viewCapacity(parts().capacity.state)]]),
        };
      case "pipeline":
        return {
          everyMs: databaseEveryMs,
          read: async () => new Map([["pipeline", await viewPipeline(deps, parts().pipeline)]]),
        };
    }
  }
}
