/** What is known of one request, as a list of facts, with its id to copy. */
import { useTexts } from "../../messages/messages.ts";
import { CopyButton } from "../copy-button.tsx";
import { longKeyName } from "./key-name.ts";
import { lengthOf, reasonText, type ListedRequest } from "./request-columns.tsx";

const idOfText = "request-id";

export function RequestFacts({ request }: { readonly request: ListedRequest }) {
  const texts = useTexts();
  const { t, format } = texts;
  const { columns, explained } = t.requests;
  const { id, model, key, promptTokens, completionTokens, credits, firstTokenSeconds, seconds } = request;
  const { outcome, status, code, advice, requests } = request;
  const sentences: Readonly<Record<string, string>> = t.overview.advice;
  const facts = [
    [columns.at, `${format.date(request.at)}, ${format.second(request.at)}`],
    [columns.model, model],
    [columns.key, longKeyName(key, texts)],
    [t.requests.parts.user, key.userEmail ?? t.usage.deletedUser],
    [t.usage.columns.promptTokens, promptTokens === null ? null : format.number(promptTokens)],
    [t.usage.columns.completionTokens, completionTokens === null ? null : format.number(completionTokens)],
    [columns.credits, credits === null ? null : format.number(credits)],
    [columns.firstToken, firstTokenSeconds === null ? null : lengthOf(firstTokenSeconds, texts)],
    [columns.seconds, lengthOf(seconds, texts)],
    [columns.result, [t.requests.outcomes[outcome], status].filter(Boolean).join(" ")],
    ...(code === null ? [] : [[t.requests.why, reasonText(code, texts)] as const]),
  ] as const;
  return (
    <>
      <div className="copied-id">
        <span>
          <small>{t.requests.id}</small> <code id={idOfText}>{id}</code>
        </span>
        <CopyButton text={id} shownIn={idOfText} />
      </div>
      <dl className="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value ?? t.shell.unknown}</dd>
          </div>
        ))}
      </dl>
      <p>{outcome === "refused" ? (sentences[advice ?? ""] ?? sentences["other"]) : explained[outcome]}</p>
      {requests > 1 && <p className="hint">{t.requests.alikeHint(format.number(requests))}</p>}
    </>
  );
}
