/** The page of usage: what used the credits. */
import { mainSums } from "../../../../src/usage/usage-columns.ts";
import { useRead } from "../../api/queries.ts";
import { addressOf } from "../../api/client.ts";
import { ButtonLink } from "../../elements/button.tsx";
import { ChosenFilters } from "../../elements/chosen-filters.tsx";
import { Empty } from "../../elements/empty.tsx";
import { daysBetween, germanDay, isGermanMidnight } from "../../time/german-day.ts";
import { Icon } from "../../elements/icons.tsx";
import { oneOf, useListState } from "../../elements/list-state.ts";
import { Loaded } from "../../elements/loaded.tsx";
import { useNow } from "../../time/now.ts";
import { Page } from "../../elements/page.tsx";
import { useTexts } from "../../messages/messages.ts";
import { useMay } from "../../session/session.ts";
import { dayBars } from "./day-bars.ts";
import { UsageChart } from "./usage-chart.tsx";
import { usageDays, type UsageDays } from "./usage-period.ts";
import { chosenFilters, UsageFilters } from "./usage-filters.tsx";
import { usageFilter } from "./usage-filter.ts";
import { partName, UsageTable, type Usage, type UsagePart } from "./usage-table.tsx";

const parts = ["model", "key", "user", "day"] as const;
const sorts = [...mainSums, ...parts];
const refreshMs = 60_000;
/** The API's maximum number of rows per page: a month of some models. */
const chartRowsMax = 200;

export default function UsagePage() {
  const texts = useTexts();
  const { t, format } = texts;
  const list = useListState();
  const seesOthers = useMay()("listUsers");
  const days = usageDays(list.get, germanDay(useNow()));
  const offered = parts.filter((part) => part !== "user" || seesOthers);
  const by: UsagePart = oneOf(offered, list.get("by")) ?? "model";
  const sort = oneOf(sorts, list.sort) ?? (by === "day" ? "day" : "credits");
  const window = { from: days.from, to: days.to, ...usageFilter(list.get) };
  const query = { ...window, by, sort, order: list.order ?? ("desc" as const) };
  const read = useRead("showUsage", { query: { ...query, page: list.page } }, { refreshMs });
  const totals = read.data?.totals;
  return (
    <Page
      title={t.shell.pages.usage}
      lead={
        totals &&
        t.usage.lead(
          format.short(totals.credits),
          format.number(totals.requests),
          format.short(totals.promptTokens),
          format.short(totals.completionTokens),
        )
      }
      actions={
        <a className="button" href={addressOf("exportUsage", { query })} download title={t.usage.csvHint}>
          <Icon name="download" />
          {t.usage.csv}
        </a>
      }
    >
      <UsageFilters list={list} days={days} offered={offered} by={by} />
      {read.data && <ChosenFilters chosen={chosenFilters(read.data.filter, texts)} list={list} />}
      <Loaded read={read}>
        {(usage) =>
          usage.total === 0 ? (
            <Empty title={t.usage.empty} hint={t.usage.emptyHint}>
              <ButtonLink to="/start">{t.shell.pages.start}</ButtonLink>
            </Empty>
          ) : (
            <>
              <DailyChart window={window} by={by} />
              <UsageTable usage={usage} by={by} state={list} />
              <p className="hint">
                {t.usage.range(format.longDay(usage.from), format.longDay(usage.to))} ·{" "}
                {t.usage.asOf(format.clock(Date.parse(usage.asOf)))}
              </p>
              {usage.periodStart !== null && !isGermanMidnight(usage.periodStart) && (
                <p className="hint">{t.usage.periodSince(format.dateTime(usage.periodStart))}</p>
              )}
              {usage.totals.estimatedTokens > 0 && (
                <p className="hint">{t.usage.estimated(format.number(usage.totals.estimatedTokens))}</p>
              )}
            </>
          )
        }
      </Loaded>
    </Page>
  );
}

type UsageWindow = Pick<UsageDays, "from" | "to"> & ReturnType<typeof usageFilter>;

interface ChartProps {
  readonly window: UsageWindow;
  readonly by: UsagePart;
}

/** Shows a chart by day and the chosen part, or by day alone if there are too many rows. */
function DailyChart({ window, by }: ChartProps) {
  const texts = useTexts();
  const { t } = texts;
  const query = { ...window, sort: "day" as const, order: "asc" as const, pageSize: chartRowsMax };
  const byPart = useRead("showUsage", { query: { ...query, by: by === "day" ? by : `day,${by}` } }, { refreshMs });
  const isTooMuch = byPart.data !== undefined && byPart.data.total > chartRowsMax;
  const byDay = useRead("showUsage", { query: { ...query, by: "day" } }, { refreshMs, enabled: isTooMuch });
  const today = germanDay(useNow());
  const show = ({ from, to, items }: Usage) => (
    // A billing period ends in the future, where there are no bars.
    <UsageChart
      {...dayBars(
        items.map((row) => ({ ...row, series: partName(row, texts) })),
        daysBetween(from, to < today ? to : today),
        t.usage.others,
      )}
    />
  );
  return isTooMuch ? <Loaded read={byDay}>{show}</Loaded> : <Loaded read={byPart}>{show}</Loaded>;
}
