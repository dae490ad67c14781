/** Credits of the last 30 days as bars. The page of usage has them in detail, also for keyboards and screen readers. */
import { Link } from "wouter";
import { useRead } from "../../api/queries.ts";
import { Loaded } from "../../elements/loaded.tsx";
import { useTexts } from "../../messages/messages.ts";
import { useSession } from "../../session/session.ts";
import { germanDay } from "../../time/german-day.ts";
import { useNow } from "../../time/now.ts";
import { daysShown, firstDay, lastDays } from "./last-days.ts";

const refreshMs = 300_000;
/** Sizes in units of the picture, which is as wide as its card. */
const [step, height] = [10, 60];

export function DaysCard() {
  const { t, format } = useTexts();
  const today = germanDay(useNow());
  const query = { by: "day", from: firstDay(today), to: today, pageSize: daysShown };
  const read = useRead("showUsage", { query }, { refreshMs });
  const isMember = useSession().user.role === "member";
  return (
    <section className="card" aria-labelledby="days">
      <h2 id="days">{isMember ? t.overview.days.own : t.overview.days.title}</h2>
      <Loaded read={read}>
        {({ items, totals }) => {
          const days = lastDays(items, today);
          const most = days.reduce((top, one) => (one.credits > top.credits ? one : top));
          return (
            <>
              <p className="soft number">
                {most.credits > 0
                  ? t.overview.days.sum(format.short(totals.credits), format.day(most.day), format.short(most.credits))
                  : t.overview.days.none}
              </p>
              <svg
                className="days"
                viewBox={`0 0 ${daysShown * step} ${height}`}
                preserveAspectRatio="none"
                aria-hidden="true"
              >
                {days.map(({ day, credits }, index) => {
                  const top = credits > 0 ? Math.max(1.5, (credits / most.credits) * height) : 0.5;
                  return (
                    <rect key={day} x={index * step + 1.5} y={height - top} width={step - 3} height={top}>
                      <title>{t.overview.days.bar(format.day(day), format.number(credits))}</title>
                    </rect>
                  );
                })}
              </svg>
              <p className="card-foot">
                <span>{format.day(days[0]!.day)}</span>
                <Link to="/usage?days=30">{t.overview.days.more}</Link>
                <span>{t.overview.days.today}</span>
              </p>
            </>
          );
        }}
      </Loaded>
    </section>
  );
}
