/** The columns of a list of requests, for the portal and the console. */
import { Link } from "wouter";
import type { ReactNode } from "react";
import type { PortalContract } from "../../../../src/surface/contract/contract.ts";
import type { Reply } from "../../../../src/surface/contract/route.ts";
import { useTexts, type Texts } from "../../messages/messages.ts";
import { germanDay } from "../../time/german-day.ts";
import { Badge, type Tone } from "../badge.tsx";
import type { ListState } from "../list-state.ts";
import type { Column } from "../table.tsx";
import { keyName } from "./key-name.ts";

export type ListedRequest = Reply<PortalContract["listRequests"]>["items"][number];

export const outcomes = ["answered", "refused", "client-gone", "timeout", "broken"] as const;

const tones: Readonly<Record<ListedRequest["outcome"], Tone>> = {
  answered: "good",
  refused: "bad",
  "client-gone": "plain",
  timeout: "warn",
  broken: "bad",
};

interface RequestColumnsWish {
  readonly list: ListState;
  /** Shows a time, such as with a button that opens the details. */
  readonly at?: (request: ListedRequest, time: string) => ReactNode;
  readonly seesOthers: boolean;
}

export function useRequestColumns({ list, at, seesOthers }: RequestColumnsWish): readonly Column<ListedRequest>[] {
  const texts = useTexts();
  const { t, format } = texts;
  const { columns } = t.requests;
  const orUnknown = <T,>(value: T | null, text: (value: T) => string) =>
    value === null ? t.shell.unknown : text(value);
  const length = (seconds: number) => lengthOf(seconds, texts);
  return [
    {
      name: "at",
      title: columns.at,
      cell: (request) => at?.(request, timeOf(request, texts)) ?? <time>{timeOf(request, texts)}</time>,
    },
    {
      name: "model",
      title: columns.model,
      cell: ({ model }) => (
        <Only name="model" value={model} list={list}>
          <code>{model ?? t.shell.unknown}</code>
        </Only>
      ),
    },
    {
      name: "key",
      title: columns.key,
      cell: ({ key }) => (
        <span className="name-cell key-cell">
          <Only name="key" value={key.id} list={list}>
            {keyName(key, texts)}
          </Only>{" "}
          {key.lastFour && <code className="soft">…{key.lastFour}</code>}
          {seesOthers && <small className="reason">{key.userEmail}</small>}
        </span>
      ),
    },
    {
      name: "tokens",
      title: columns.tokens,
      isNumber: true,
      cell: ({ promptTokens, completionTokens }) =>
        promptTokens === null || completionTokens === null
          ? t.shell.unknown
          : t.requests.tokens(format.number(promptTokens), format.number(completionTokens)),
    },
    {
      name: "credits",
      title: columns.credits,
      isNumber: true,
      cell: ({ credits }) => orUnknown(credits, format.number),
    },
    {
      name: "firstToken",
      title: columns.firstToken,
      isNumber: true,
      cell: ({ firstTokenSeconds }) => orUnknown(firstTokenSeconds, length),
    },
    { name: "seconds", title: columns.seconds, isNumber: true, cell: ({ seconds }) => length(seconds) },
    { name: "result", title: columns.result, cell: (request) => <Result request={request} /> },
  ];
}

/** The day and the second of its acceptance, short enough for a column. */
export function timeOf({ at }: ListedRequest, { format }: Texts): string {
  return `${format.day(germanDay(Date.parse(at)))}, ${format.second(at)}`;
}

/** Refusals take milliseconds. */
export function lengthOf(seconds: number, { format }: Texts): string {
  return seconds < 0.1 ? `${format.number(Math.round(seconds * 1_000))} ms` : format.duration(seconds);
}

/** Its outcome, its status, and why it was refused. */
function Result({ request: { outcome, status, code, requests } }: { readonly request: ListedRequest }) {
  const texts = useTexts();
  const { t, format } = texts;
  return (
    <span className="name-cell">
      <Badge tone={tones[outcome]}>{t.requests.outcomes[outcome]}</Badge> <span className="number">{status}</span>
      {code !== null && (
        <small className="reason">
          {reasonText(code, texts)}
          {requests > 1 && `, ${t.requests.alike(format.number(requests))}`}
        </small>
      )}
    </span>
  );
}

/** During an update, a newer router may have written a code that this page does not know. */
export function reasonText(code: string, { t }: Texts): string {
  const codes: Readonly<Record<string, string>> = t.overview.codes;
  return codes[code] ?? code;
}

interface OnlyProps {
  readonly name: "model" | "key" | "account";
  readonly value: string | null;
  readonly list: ListState;
  readonly children: ReactNode;
}

/** Links to the requests of this part only. */
export function Only({ name, value, list, children }: OnlyProps) {
  const { t } = useTexts();
  if (value === null) return <strong>{children}</strong>;
  return (
    <strong>
      <Link to={`/requests?${list.with({ [name]: value })}`} title={t.usage.showOnly}>
        {children}
      </Link>
    </strong>
  );
}
