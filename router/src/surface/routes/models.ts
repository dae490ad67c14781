/** Handlers of models: the models that the session's user may use, and each model's current state. */
import { factorEntryAt, isCallable, type CatalogueEntry } from "@weiche/shared/catalogue.ts";
import type { Session } from "../../sign-in/sessions.ts";
import { scheduleOf } from "../../accounts/notices-catalogue.ts";
import { periodOf, readSubscription } from "../../subscriptions/subscription.ts";
import { instantText } from "../../db/database.ts";
import { modelState, type ModelLiveness } from "../../nodes/model-state.ts";
import type { Handlers } from "../server/add-routes.ts";
import type { modelsContract } from "../contract/models.ts";
import type { Reply } from "../contract/route.ts";
import type { HandlerDeps } from "./handler-deps.ts";

export function modelsHandlers(deps: HandlerDeps): Handlers<typeof modelsContract> {
  const { database, clock, catalogue, changes, nodes } = deps;

  /** Requests of this user are refused for every model until the billing period ends. */
  async function lackOfCredits({ id }: Session["user"], nowMs: number): Promise<Model["unusable"]> {
    const { limitReachedUntil, exhaustedUntil } = await database.kysely
      .selectFrom("users as u")
      .innerJoin("accounts as a", "a.id", "u.accountId")
      .select(["u.limitReachedUntil", "a.exhaustedUntil"])
      .where("u.id", "=", id)
      .executeTakeFirstOrThrow();
    const isAhead = (until: Temporal.Instant | null) => until !== null && until.epochMilliseconds > nowMs;
    return isAhead(limitReachedUntil) ? "user-limit" : isAhead(exhaustedUntil) ? "quota-exhausted" : null;
  }

  return {
    async listModels({ session: { user } }) {
      const { terms, nowMs } = await readSubscription(database.kysely, user.accountId, clock.now());
      const ofCredits = periodOf(terms, nowMs) === undefined ? "no-package" : await lackOfCredits(user, nowMs);
      const views = nodes();
      const items = Array.from(catalogue().values(), (entry) => {
        const live = modelState(entry.id, views);
        return { ...viewModel(entry, nowMs), state: live.state, unusable: whyNot(entry, user, ofCredits, live) };
      });
      return { items };
    },
    listChanges: () => ({
      items: changes().map(({ atMs, text, models }) => ({ at: instantText(atMs), text, models })),
    }),
  };
}

type Model = Reply<(typeof modelsContract)["listModels"]>["items"][number];

/** Returns the first reason for which the API would refuse the model, in the API's order, or null. */
function whyNot(
  entry: CatalogueEntry,
  user: Session["user"],
  ofCredits: Model["unusable"],
  live: ModelLiveness,
): Model["unusable"] {
  if (ofCredits) return ofCredits;
  if (!isCallable(entry)) return "announced";
  if (user.allowedModels && !user.allowedModels.includes(entry.id)) return "not-allowed";
  return live.why ?? null;
}

function viewModel(entry: CatalogueEntry, nowMs: number): Omit<Model, "state" | "unusable"> {
  const { id, category, status, contextTokens, answersMax, reasoning, images, embeddings, toolsEnforced } = entry;
  const { factor, coming } = scheduleOf(entry, nowMs);
  const { min, max, default: usual } = embeddings?.dimensions ?? {};
  return {
    id,
    category,
    status,
    contextTokens,
    answersMax: embeddings ? null : answersMax,
    factor,
    factorIsProvisional: factorEntryAt(entry, nowMs).isProvisional ?? false,
    comingFactors: coming,
    tools: category === "embeddings" ? null : toolsEnforced ? "enforced" : "auto",
    images: images ? { max: images.max, formats: images.formats } : null,
    embeddings: embeddings
      ? { minDimensions: min!, maxDimensions: max!, defaultDimensions: usual!, inputTokens: embeddings.inputTokens }
      : null,
    reasoning: { mode: reasoning.mode, efforts: reasoning.efforts, default: reasoning.default ?? null },
  };
}
