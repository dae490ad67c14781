/** docs/api.md as a page of the portal, for authors of API clients. Its text is only in English. */
import { useEffect } from "react";
import { ButtonLink } from "../../elements/button.tsx";
import { Page } from "../../elements/page.tsx";
import { Table } from "../../elements/table.tsx";
import { useHelp } from "../../messages/help.ts";
import { useTexts } from "../../messages/messages.ts";
import text from "virtual:api-page";
import { readPage, type Block, type Inline } from "./page-text.ts";

/** Splits the page at second-level headings. The first part has no heading. */
const [intro, ...sections] = readPage(text).reduce<Block[][]>(
  (parts, block) => {
    if (block.kind !== "heading" || block.level === 3) parts.at(-1)!.push(block);
    else if (block.level === 2) parts.push([block]);
    return parts;
  },
  [[]],
);

export default function ClientsPage() {
  const { t } = useTexts();
  const help = useHelp();
  useEffect(() => {
    // The browser looked for the anchor before the page was rendered.
    document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  }, []);
  return (
    <Page
      title={t.shell.pages.clients}
      lead={help.reference.lead}
      actions={<ButtonLink to="/help">{t.shell.pages.help}</ButtonLink>}
    >
      <article className="api-text" lang="en">
        <div className="stack">
          <Blocks blocks={intro!} caption={t.shell.pages.clients} />
        </div>
        {sections.map(([first, ...blocks]) => {
          const { id, text: title } = first as Block & { kind: "heading" };
          return (
            <section key={id} className="stack" aria-labelledby={id}>
              <h2 id={id}>{title}</h2>
              <Blocks blocks={blocks} caption={title} />
            </section>
          );
        })}
      </article>
    </Page>
  );
}

/** Shows blocks. `caption`: the tables' caption. */
function Blocks({ blocks, caption }: { readonly blocks: readonly Block[]; readonly caption: string }) {
  return blocks.map((block, index) => <OneBlock key={index} block={block} caption={caption} />);
}

function OneBlock({ block, caption }: { readonly block: Block; readonly caption: string }) {
  switch (block.kind) {
    case "heading":
      return <h3 id={block.id}>{block.text}</h3>;
    case "paragraph":
      return (
        <p className="prose">
          <Words words={block.words} />
        </p>
      );
    case "list":
      return (
        <ul className="prose bullets">
          {block.items.map((words, index) => (
            <li key={index}>
              <Words words={words} />
            </li>
          ))}
        </ul>
      );
    case "table":
      return (
        <div className="prose-table">
          <Table
            caption={caption}
            columns={block.columns.map((title, index) => ({
              name: title,
              title,
              cell: (row: number) => <Words words={block.rows[row]![index]!} />,
            }))}
            rows={[...block.rows.keys()]}
            rowKey={String}
          />
        </div>
      );
  }
}

function Words({ words }: { readonly words: readonly Inline[] }) {
  return words.map((word, index) => {
    if (word.kind === "text") return word.text;
    if (word.kind === "code") return <code key={index}>{word.text}</code>;
    return (
      <a key={index} href={word.to}>
        <Words words={word.words} />
      </a>
    );
  });
}
