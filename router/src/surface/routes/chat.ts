/** Handler of the playground: sends a request of the session's user the same way as one with a key. */
import { ApiError } from "@weiche/shared/errors.ts";
import { asId, type ModelId, type UserId } from "@weiche/shared/ids.ts";
import { judge, lookUpTestChat } from "../../callers/cached-key.ts";
import { accept, type Authenticated } from "../../api/authenticate.ts";
import type { Exchange } from "../../api/exchange.ts";
import { serves } from "../../nodes/model-state.ts";
import type { Placed } from "../../nodes/placement.ts";
import type { Handlers } from "../server/add-routes.ts";
import { ChatAnswer } from "./chat-answer.ts";
import { ChatWaits } from "./chat-waits.ts";
import type { chatContract } from "../contract/chat.ts";
import { readChatCost } from "../../usage/request-usage.ts";
import type { HandlerDeps } from "./handler-deps.ts";

export function chatHandlers(deps: HandlerDeps): Handlers<typeof chatContract> {
  const { database, clock, nodes, usualWaitMs, chat, requests } = deps;
  const waits = new ChatWaits({ ofNode: (node) => requests.ofNode(node), clock });
  return {
    async showChatCost({ session, params }) {
      const usage = await readChatCost(database.pool, asId(params.id), session.user.id);
      return { usage };
    },
    async chat(call) {
      const { request, response } = call.takeOver();
      const sink = new ChatAnswer(response, clock);
      const isActive = ({ node, slot }: Placed, model: ModelId) =>
        nodes()
          .find((view) => view.node === node)
          ?.slots.some((view) => view.name === slot && serves(view, model));
      let asked: Exchange | undefined;
      await chat({
        request,
        sink,
        authenticate(exchange) {
          asked = exchange;
          sink.requestId = exchange.id;
          return authenticate(exchange, call.session.user.id);
        },
        onPlaced(at, factor) {
          const { id, attempts, model } = asked!;
          if (isActive(at, model!)) sink.placed("active", factor);
          else sink.placed("activating", factor, usualWaitMs(model!));
          // The attempt begins after this call.
          const isCurrent = () => sink.isWaited && asked!.attempts === attempts + 1;
          waits.follow(at.node, { id, attempts: attempts + 1 }, (standing) => {
            if (standing && isCurrent()) sink.waits(standing);
            return isCurrent();
          });
        },
      });
    },
  };

  /** Authenticates as an unrestricted key of the user. A reached limit gets 429, because the portal takes 401 for a session that has ended. */
  async function authenticate(exchange: Exchange, userId: UserId): Promise<Authenticated> {
    const key = await lookUpTestChat(database.prompt, userId);
    const found = key ? judge(key, exchange.acceptedAtMs) : ({ refused: "invalid_api_key", why: "unknown" } as const);
    if (!("why" in found) || found.why !== "blocked-by-limit") return accept(exchange, found);
    exchange.identity = found.of;
    const reason = "key_blocked_by_limit";
    throw new ApiError("insufficient_quota", "Your credit limit of this billing period is reached.", { reason });
  }
}
