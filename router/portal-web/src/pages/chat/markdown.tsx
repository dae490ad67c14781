/**
 * Renders Markdown of a model as elements. HTML in it is shown as text, images as links, and only links to the web lead
 * anywhere, so that an answer can neither run code nor fetch anything.
 */
import { Lexer, type MarkedToken, type Token, type Tokens } from "marked";
import { Fragment, useId, useMemo, type ReactNode } from "react";
import { CopyButton } from "../../elements/copy-button.tsx";

export default function Markdown({ text }: { readonly text: string }) {
  const tokens = useMemo(() => Lexer.lex(text), [text]);
  return <div className="markdown">{nodesOf(tokens)}</div>;
}

/** A rendered token is known by its place: text is only added at the end. */
function nodesOf(tokens: readonly Token[] | undefined): ReactNode {
  return tokens?.map((token, at) => <Fragment key={at}>{nodeOf(token as MarkedToken)}</Fragment>);
}

function nodeOf(token: MarkedToken): ReactNode {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      // Its level is the answer's, not the page's.
      return <p className={`heading level-${token.depth}`}>{nodesOf(token.tokens)}</p>;
    case "paragraph":
      return <p>{nodesOf(token.tokens)}</p>;
    case "code":
      return <CodeBlock code={token.text} language={token.lang ?? ""} />;
    case "blockquote":
      return <blockquote>{nodesOf(token.tokens)}</blockquote>;
    case "list":
      return listOf(token);
    case "table":
      return <TableBlock table={token} />;
    case "hr":
      return <hr />;
    case "strong":
      return <strong>{nodesOf(token.tokens)}</strong>;
    case "em":
      return <em>{nodesOf(token.tokens)}</em>;
    case "del":
      return <del>{nodesOf(token.tokens)}</del>;
    case "codespan":
      return <code>{token.text}</code>;
    case "br":
      return <br />;
    case "link":
      return linkTo(token.href, nodesOf(token.tokens));
    case "image":
      return linkTo(token.href, token.text || token.href);
    case "text":
      return token.tokens ? nodesOf(token.tokens) : plain(token.text);
    case "escape":
      return token.text;
    case "html":
    case "checkbox":
    case "list_item":
      return token.raw;
  }
}

function listOf({ ordered, start, items }: Tokens.List): ReactNode {
  const entries = items.map((item, at) => (
    // oxlint-disable-next-line react/no-array-index-key
    <li key={at}>
      {item.task && (item.checked ? "☑ " : "☐ ")}
      {nodesOf(item.tokens.filter(({ type }) => type !== "checkbox"))}
    </li>
  ));
  return ordered ? <ol start={start === "" ? 1 : start}>{entries}</ol> : <ul>{entries}</ul>;
}

function linkTo(href: string, children: ReactNode): ReactNode {
  if (!/^(https?:\/\/|mailto:)/i.test(href)) return children;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

const entities: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', "#39": "'" };

function plain(text: string): string {
  return text.replace(/&(lt|gt|amp|quot|#39);/g, (_whole, name: string) => entities[name]!);
}

function CodeBlock({ code, language }: { readonly code: string; readonly language: string }) {
  const id = useId();
  return (
    <div className="code-block">
      <div className="code-head">
        <span className="soft">{language}</span>
        <CopyButton text={code} shownIn={id} kind="quiet" />
      </div>
      {/* It scrolls sideways. To scroll with the keyboard, it must have the focus. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre id={id} tabIndex={0}>
        {code}
      </pre>
    </div>
  );
}

function TableBlock({ table: { header, rows, align } }: { readonly table: Tokens.Table }) {
  const cells = (row: readonly Tokens.TableCell[], Cell: "th" | "td") =>
    row.map(({ tokens }, at) => (
      // oxlint-disable-next-line react/no-array-index-key
      <Cell key={at} className={align[at] === "right" ? "end" : undefined}>
        {nodesOf(tokens)}
      </Cell>
    ));
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className="table-block" tabIndex={0}>
      <table>
        <thead>
          <tr>{cells(header, "th")}</tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            // oxlint-disable-next-line react/no-array-index-key
            <tr key={at}>{cells(row, "td")}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
