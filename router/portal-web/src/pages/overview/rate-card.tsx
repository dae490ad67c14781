/** How much of the account's request limits is in use now, and was at most in the last 24 hours. */
import { useTexts } from "../../messages/messages.ts";
import type { Credits } from "./overview-lead.ts";

export function RateCard({ rate }: Pick<Credits, "rate">) {
  const { t } = useTexts();
  return (
    <section className="card" aria-labelledby="now">
      <h2 id="now">{t.overview.now}</h2>
      <Gauge label={t.overview.lastMinute} count={rate.lastMinute} peak={rate.peakMinute} max={rate.perMinute} />
      <Gauge label={t.overview.parallel} count={rate.parallel} peak={rate.peakParallel} max={rate.parallelMax} />
    </section>
  );
}

interface GaugeProps {
  readonly label: string;
  readonly count: number;
  readonly peak: number;
  /** null without a package. */
  readonly max: number | null;
}

function Gauge({ label, count, peak, max }: GaugeProps) {
  const { t, format } = useTexts();
  const value = max === null ? format.number(count) : t.overview.ofMax(format.number(count), format.number(max));
  const share = (part: number) => (max ? Math.min(100, (part / max) * 100) : 0);
  const tone = max !== null && peak >= max ? "bad" : share(peak) >= 75 ? "warn" : "good";
  return (
    <div className={`gauge quota small ${tone}`}>
      <p className="gauge-head">
        <span>{label}</span>
        <strong className="number">{value}</strong>
      </p>
      {max !== null && (
        <svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
          <rect width="100" height="1" className="quota-whole" />
          <rect width={share(peak)} height="1" className="quota-expected" />
          <rect width={share(count)} height="1" className="quota-used" />
        </svg>
      )}
      <small className="soft number">{t.overview.peak(format.number(peak))}</small>
    </div>
  );
}
