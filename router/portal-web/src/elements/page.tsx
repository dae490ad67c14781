/** The frame of a page: titles of document and page, the sentence that answers its question, and the focus. */
import { useEffect, useRef, type ReactNode } from "react";

interface PageProps {
  readonly title: string;
  /** The answer in one sentence. */
  readonly lead?: ReactNode;
  /** Elements beside the title. */
  readonly actions?: ReactNode;
  readonly children?: ReactNode;
}

let isFirst = true;

export function Page({ title, lead, actions, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    // The browser sets the focus on the first page.
    if (!isFirst) heading.current?.focus();
    isFirst = false;
  }, []);
  useEffect(() => {
    document.title = `${title} · Weiche`;
  }, [title]);
  return (
    <div className="page">
      <header className="page-head">
        <div>
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {lead !== undefined && <p className="lead">{lead}</p>}
        </div>
        {actions && <div className="actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}
