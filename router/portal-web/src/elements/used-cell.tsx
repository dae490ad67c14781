/** A table cell with used credits, and their limit if there is one. */
import type { ReactNode } from "react";
import { useTexts } from "../messages/messages.ts";
import { QuotaBar } from "./quota-bar.tsx";

interface UsedCellProps {
  /** The meter's label: who used the credits. */
  readonly label: string;
  readonly used: string;
  readonly limit: string | null;
  readonly children?: ReactNode;
}

export function UsedCell({ label, used, limit, children }: UsedCellProps) {
  const { format } = useTexts();
  return (
    <div className="used-cell">
      {format.number(used)}
      {limit !== null && ` / ${format.number(limit)}`}
      {limit !== null && <QuotaBar label={label} used={used} limit={limit} isSmall />}
      {children}
    </div>
  );
}
