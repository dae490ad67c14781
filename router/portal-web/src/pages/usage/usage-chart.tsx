/** Credits per day as bars. A slider below moves from day to day, for keyboards and screen readers. */
import { scaleBand, scaleLinear } from "@visx/scale";
import { useState } from "react";
import { useTexts } from "../../messages/messages.ts";
import type { DayBars } from "./day-bars.ts";

/** Sizes in units of the picture, which is as wide as its card. Narrow screens get larger letters. */
const [height, ground, margin] = [220, 196, 48];
const labelWidthMax = 60;
const widthOf = () => (window.innerWidth < 700 ? 420 : 960);

/** Position below a day's bar, kept inside the picture. */
function DayLabel({ middle, end, text }: { readonly middle: number; readonly end: number; readonly text: string }) {
  const isLast = middle + labelWidthMax / 2 > end;
  return (
    <text x={isLast ? end : middle} y={height - 6} textAnchor={isLast ? "end" : "middle"}>
      {text}
    </text>
  );
}

export function UsageChart({ series, bars }: DayBars) {
  const { t, format } = useTexts();
  const [chosen, setChosen] = useState<number>();
  const [width] = useState(widthOf);
  const x = scaleBand({ domain: bars.map(({ day }) => day), range: [margin, width], padding: 0.25 });
  const most = Math.max(1, ...bars.map(({ credits }) => credits));
  const y = scaleLinear({ domain: [0, most], range: [ground, 8], nice: true });
  const index = Math.min(chosen ?? bars.findLastIndex(({ credits }) => credits > 0), bars.length - 1);
  const bar = bars[index];
  if (!bar) return null;
  const said = t.usage.bar(format.longDay(bar.day), format.number(bar.credits));
  const every = Math.ceil(bars.length / (width / 96));
  return (
    <figure className="chart card">
      <figcaption>
        <h2>{t.usage.chart}</h2>
        <output className="number">{said}</output>
      </figcaption>
      <svg viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
        {y.ticks(3).map((tick) => (
          <g key={tick}>
            <line x1={margin} x2={width} y1={y(tick)} y2={y(tick)} className="chart-line" />
            <text x={margin - 8} y={y(tick)} dy="0.32em" textAnchor="end">
              {format.short(tick)}
            </text>
          </g>
        ))}
        {bars.map(({ day, parts }, at) => (
          <g key={day} onPointerEnter={() => setChosen(at)} className={at === index ? "chart-day chosen" : "chart-day"}>
            <rect
              x={x(day)! - (x.step() - x.bandwidth()) / 2}
              y={0}
              width={x.step()}
              height={ground}
              className="chart-back"
            />
            {parts.map(({ series: name, from, to }) => (
              <rect
                key={name}
                x={x(day)}
                y={y(to)}
                width={x.bandwidth()}
                height={Math.max(0, y(from) - y(to))}
                className={`series-${series.indexOf(name)}`}
              />
            ))}
            {at % every === 0 && <DayLabel middle={x(day)! + x.bandwidth() / 2} end={width} text={format.day(day)} />}
          </g>
        ))}
      </svg>
      <input
        type="range"
        min={0}
        max={bars.length - 1}
        value={index}
        aria-label={`${t.usage.chart}. ${t.usage.chartHint}`}
        aria-valuetext={said}
        onChange={({ target }) => setChosen(Number(target.value))}
      />
      {series.some(Boolean) && (
        <ul className="legend-list">
          {series.map((name, at) => (
            <li key={name}>
              <i className={`series-${at}`} />
              {name}
            </li>
          ))}
        </ul>
      )}
    </figure>
  );
}
