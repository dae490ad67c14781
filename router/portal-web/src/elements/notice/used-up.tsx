/** Tells that credits are used up, until when calls are refused, and leads to what this person can do about it. */
import type { Answer } from "../../api/client.ts";
import { useTexts } from "../../messages/messages.ts";
import { useMay } from "../../session/session.ts";
import { ButtonLink } from "../button.tsx";

type Facts = Pick<Answer<"showCredits">, "exhaustedUntil"> & {
  readonly own: Pick<Answer<"showCredits">["own"], "reachedUntil">;
};

export function UsedUp({ credits: { exhaustedUntil, own } }: { readonly credits: Facts }) {
  const { t, format } = useTexts();
  const may = useMay();
  // An own limit refuses first, with 401.
  const until = own.reachedUntil ?? exhaustedUntil;
  if (!until) return null;
  const isOwn = own.reachedUntil !== null;
  const [needs, to] = isOwn ? (["updateUser", "/users"] as const) : (["changePackage", "/package"] as const);
  const text = isOwn ? t.notices.ownUsedUp : t.notices.usedUp;
  return (
    <output className="problem">
      <span>{text(format.date(until))}</span>
      {may(needs) ? (
        <ButtonLink to={to} kind="primary">
          {isOwn ? t.notices.actions.raise : t.notices.actions.upgrade}
        </ButtonLink>
      ) : (
        <span>{isOwn ? t.notices.askAdmin : t.notices.askOwner}</span>
      )}
    </output>
  );
}
