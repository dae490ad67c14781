/** The section of the help page on bounds of JSON Schemas. */
import { CodeText } from "../../elements/code-text.tsx";
import { Table } from "../../elements/table.tsx";
import { useHelp } from "../../messages/help.ts";
import { useTexts } from "../../messages/messages.ts";
import { RuleList } from "./rule-list.tsx";
import { schemaBounds } from "./schema-bounds.ts";

const rows = Object.keys(schemaBounds) as (keyof typeof schemaBounds)[];

export function SchemasSection() {
  const { format } = useTexts();
  const { title, lead, columns, rows: texts, bySize, rules } = useHelp().schemas;
  const bound = (count: number | null) => (count === null ? bySize : format.number(count));
  return (
    <section className="stack" aria-labelledby="schemas">
      <h2 id="schemas">{title}</h2>
      <p className="prose">
        <CodeText text={lead} />
      </p>
      <div className="prose-table">
        <Table
          caption={title}
          columns={[
            { name: "what", title: columns.what, cell: (row) => <CodeText text={texts[row]} /> },
            { name: "others", title: columns.others, isNumber: true, cell: (row) => bound(schemaBounds[row].others) },
            { name: "vllm", title: columns.vllm, isNumber: true, cell: (row) => bound(schemaBounds[row].vllm) },
          ]}
          rows={rows}
          rowKey={(row) => row}
        />
      </div>
      <RuleList rules={rules} />
    </section>
  );
}
