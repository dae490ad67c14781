/** The used part of a limit, as a meter with marks at 75 and 90 %. */
import { shareOf } from "../messages/format.ts";

interface QuotaBarProps {
  readonly label: string;
  readonly used: string;
  readonly limit: string;
  /** What will be used by the end of the period. */
  readonly expected?: string | undefined;
  readonly isSmall?: boolean;
}

export function QuotaBar({ label, used, limit, expected = used, isSmall }: QuotaBarProps) {
  const share = shareOf(used, limit);
  const tone = share >= 1 ? "bad" : share >= 0.75 ? "warn" : "good";
  return (
    <div className={`quota ${tone}${isSmall ? " small" : ""}`}>
      <meter aria-label={label} min={0} max={1} value={Math.min(1, share)} className="hidden" />
      <svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
        <rect width="100" height="1" className="quota-whole" />
        <rect width={Math.min(100, shareOf(expected, limit) * 100)} height="1" className="quota-expected" />
        <rect width={Math.min(100, share * 100)} height="1" className="quota-used" />
      </svg>
      {!isSmall && (
        <span className="quota-marks" aria-hidden="true">
          <i>75 %</i>
          <i>90 %</i>
        </span>
      )}
    </div>
  );
}
