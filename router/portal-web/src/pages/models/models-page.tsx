/** The page of models: which can be called. */
import { Link } from "wouter";
import type { Answer } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import { Badge, type Tone } from "../../elements/badge.tsx";
import { ButtonLink } from "../../elements/button.tsx";
import { Empty } from "../../elements/empty.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { Page } from "../../elements/page.tsx";
import { Table, type Column } from "../../elements/table.tsx";
import { useTexts } from "../../messages/messages.ts";

type Model = Answer<"listModels">["items"][number];
const refreshMs = 10_000;

export default function ModelsPage() {
  const { t, format } = useTexts();
  const read = useRead("listModels", {}, { refreshMs });
  const columns = useColumns();
  const items = read.data?.items ?? [];
  const usable = items.filter(({ unusable }) => unusable === null).length;
  return (
    <Page
      title={t.shell.pages.models}
      lead={read.data && t.models.lead(format.number(usable), format.number(items.length))}
      actions={<ButtonLink to="/changes">{t.shell.pages.changes}</ButtonLink>}
    >
      <Loaded read={read}>
        {(models) =>
          models.items.length > 0 ? (
            <Table caption={t.shell.pages.models} columns={columns} rows={models.items} rowKey={({ id }) => id} />
          ) : (
            <Empty title={t.models.empty} hint={t.models.emptyHint} />
          )
        }
      </Loaded>
    </Page>
  );
}

const stateTones: Readonly<Record<Model["state"], Tone>> = {
  active: "good",
  switching: "accent",
  asleep: "plain",
  unavailable: "warn",
};

function useColumns(): readonly Column<Model>[] {
  const { t, format } = useTexts();
  const { columns } = t.models;
  return [
    {
      name: "id",
      title: columns.id,
      cell: ({ id, category }) => (
        <span className="name-cell">
          <strong>
            <code>{id}</code>
          </strong>
          <small className="reason">{t.models.categories[category]}</small>
        </span>
      ),
    },
    {
      name: "status",
      title: columns.status,
      cell: ({ status }) => (
        <Badge tone={status === "Verfügbar" ? "good" : status === "Auslaufend" ? "warn" : "plain"}>
          {t.models.statuses[status]}
        </Badge>
      ),
    },
    {
      name: "factor",
      title: columns.factor,
      isNumber: true,
      cell: ({ factor, factorIsProvisional, comingFactors: [coming] }) => (
        <span>
          {format.number(factor)}
          {factorIsProvisional && <small className="reason">{t.models.provisional}</small>}
          {coming && (
            <small className="reason">
              {t.models.coming(format.number(coming.factor), format.date(coming.validFrom))}
            </small>
          )}
        </span>
      ),
    },
    {
      name: "context",
      title: columns.context,
      isNumber: true,
      cell: ({ contextTokens }) => format.number(contextTokens),
    },
    { name: "abilities", title: columns.abilities, cell: (model) => <Abilities model={model} /> },
    {
      name: "state",
      title: columns.state,
      cell: ({ state, unusable }) => (
        <Badge tone={unusable === null ? stateTones[state] : "plain"}>
          {unusable === null ? t.models.states[state] : t.models.unusable[unusable]}
        </Badge>
      ),
    },
    {
      name: "actions",
      title: columns.actions,
      isTitleHidden: true,
      cell: ({ id, category, unusable }) =>
        category !== "embeddings" &&
        unusable === null && (
          <Link to={`/chat?model=${encodeURIComponent(id)}`} className="button" aria-label={t.models.tryModel(id)}>
            {t.models.tryIt}
          </Link>
        ),
    },
  ];
}

function Abilities({ model: { tools, images, embeddings, answersMax, reasoning } }: { readonly model: Model }) {
  const { t, format } = useTexts();
  const abilities = [
    tools && t.models.tools[tools],
    images && t.models.images(format.number(images.max)),
    embeddings && t.models.dimensions(format.number(embeddings.minDimensions), format.number(embeddings.maxDimensions)),
    answersMax !== null && t.models.answers(format.number(answersMax)),
    t.models.reasoning[reasoning.mode],
  ].filter(Boolean);
  return abilities.length === 0 ? t.shell.unknown : <span>{abilities.join(", ")}</span>;
}
