/** A list as a table that the server sorts. On narrow screens each row becomes a block with its columns' names. */
import type { ReactNode } from "react";
import { useTexts } from "../messages/messages.ts";
import { Button } from "./button.tsx";
import type { ListState } from "./list-state.ts";

export interface Column<T> {
  readonly name: string;
  readonly title: string;
  /** The server's sort key. If undefined, the column cannot be sorted. */
  readonly sort?: string;
  readonly isNumber?: boolean;
  /** Whether the name is only for screen readers. */
  readonly isTitleHidden?: boolean;
  readonly cell: (row: T) => ReactNode;
  /** Its text in a last row, which is shown if any column has one. */
  readonly total?: string;
}

interface TableProps<T> {
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly rowKey: (row: T) => string;
  /** If undefined, the order is fixed. */
  readonly state?: ListState;
}

export function Table<T>({ caption, columns, rows, rowKey, state }: TableProps<T>) {
  return (
    <table className="table">
      <caption className="hidden">{caption}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <Heading key={column.name} column={column} state={state} />
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={rowKey(row)}>
            {columns.map(({ name, title, isNumber, isTitleHidden, cell }) => (
              <td key={name} className={isNumber ? "number end" : undefined} data-label={isTitleHidden ? "" : title}>
                {cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
      {columns.some(({ total }) => total !== undefined) && (
        <tfoot>
          <tr>
            {columns.map(({ name, title, isNumber, total }) => (
              <td key={name} className={isNumber ? "number end" : undefined} data-label={title}>
                {total}
              </td>
            ))}
          </tr>
        </tfoot>
      )}
    </table>
  );
}

function Heading<T>({ column, state }: { readonly column: Column<T>; readonly state: ListState | undefined }) {
  const { title, sort, isNumber, isTitleHidden } = column;
  const className = isNumber ? "end" : undefined;
  if (isTitleHidden)
    return (
      <th scope="col">
        <span className="hidden">{title}</span>
      </th>
    );
  if (!sort || !state)
    return (
      <th scope="col" className={className}>
        {title}
      </th>
    );
  const order = state.sort === sort ? (state.order ?? "asc") : undefined;
  const next = order === undefined ? (isNumber ? "desc" : "asc") : order === "asc" ? "desc" : "asc";
  return (
    <th
      scope="col"
      className={className}
      aria-sort={order === "asc" ? "ascending" : order === "desc" ? "descending" : undefined}
    >
      <button type="button" className="sort" onClick={() => state.set({ sort, order: next })}>
        {title}
        <span aria-hidden="true">{order === "asc" ? "↑" : order === "desc" ? "↓" : ""}</span>
      </button>
    </th>
  );
}

interface PagesProps {
  readonly state: ListState;
  readonly list: { readonly total: number; readonly page: number; readonly pageSize: number };
}

/** Shows the range of visible rows, and links to others. */
export function Pages({ state, list: { total, page, pageSize } }: PagesProps) {
  const { t, format } = useTexts();
  if (total <= pageSize && page === 1) return null;
  const to = Math.min(total, page * pageSize);
  return (
    <nav className="pages" aria-label={t.keys.pages}>
      <span className="soft number">
        {t.keys.page(format.number((page - 1) * pageSize + 1), format.number(to), format.number(total))}
      </span>
      <Button disabled={page <= 1} onClick={() => state.set({ page: String(page - 1) })}>
        {t.keys.previous}
      </Button>
      <Button disabled={to >= total} onClick={() => state.set({ page: String(page + 1) })}>
        {t.keys.next}
      </Button>
    </nav>
  );
}
