/**
 * The kinds of panels on the dashboards. Each panel has a unit, a description and a text that is shown without data.
 */
import type { Builder } from "@grafana/grafana-foundation-sdk/cog";
import { GraphDrawStyle, StackingMode, VisibilityMode } from "@grafana/grafana-foundation-sdk/common";
import { StackingConfigBuilder, VizLegendOptionsBuilder } from "@grafana/grafana-foundation-sdk/common";
import { LegendDisplayMode, LegendPlacement } from "@grafana/grafana-foundation-sdk/common";
import { MappingType, type Panel, type ValueMapping } from "@grafana/grafana-foundation-sdk/dashboard";
import { DataqueryBuilder, PromQueryFormat } from "@grafana/grafana-foundation-sdk/prometheus";
import { PanelBuilder as StatBuilder } from "@grafana/grafana-foundation-sdk/stat";
import { PanelBuilder as StateTimelineBuilder } from "@grafana/grafana-foundation-sdk/statetimeline";
import { PanelBuilder as TimeSeriesBuilder } from "@grafana/grafana-foundation-sdk/timeseries";

export const datasource = { type: "prometheus", uid: "${datasource}" };

interface Shown {
  readonly title: string;
  readonly description: string;
  /** A Grafana unit, or `suffix:…`. */
  readonly unit: string;
  /** The text for missing data. */
  readonly empty: string;
  /** Width in columns. A row has 24. */
  readonly width?: number;
}

interface Query {
  readonly expr: string;
  /** The series' name, with labels as `{{label}}`. */
  readonly legend: string;
}

/** Makes a panel with lines over time, or with stacked areas. */
export function lines(shown: Shown & { readonly stacked?: true; readonly max?: number }, ...queries: Query[]) {
  const panel = new TimeSeriesBuilder()
    .title(shown.title)
    .description(shown.description)
    .unit(shown.unit)
    .noValue(shown.empty)
    .datasource(datasource)
    .span(shown.width ?? 8)
    .height(8)
    .min(0)
    .drawStyle(GraphDrawStyle.Line)
    .showPoints(VisibilityMode.Never)
    .fillOpacity(shown.stacked ? 40 : 5)
    .legend(
      new VizLegendOptionsBuilder()
        .showLegend(true)
        .displayMode(LegendDisplayMode.List)
        .placement(LegendPlacement.Bottom),
    )
    .targets(queries.map((query, at) => rangeQuery(query, at)));
  if (shown.stacked) panel.stacking(new StackingConfigBuilder().mode(StackingMode.Normal).group("A"));
  return shown.max === undefined ? panel : panel.max(shown.max);
}

/** Makes a panel with the current value in large type. */
export function number(shown: Shown, expr: string): Builder<Panel> {
  return new StatBuilder()
    .title(shown.title)
    .description(shown.description)
    .unit(shown.unit)
    .noValue(shown.empty)
    .datasource(datasource)
    .span(shown.width ?? 4)
    .height(4)
    .withTarget(new DataqueryBuilder().datasource(datasource).refId("A").expr(expr).instant());
}

/**
 * Makes a panel with one lane per thing, such as a slot, which shows its word, such as a state, over time. `expr` has a
 * series for each thing and word while the thing has this word. `lane` and `word` are labels of these series.
 */
export function lanes(
  shown: Shown & { readonly height: number; readonly colours?: Readonly<Record<string, string>> },
  { expr, lane, word }: { readonly expr: string; readonly lane: string; readonly word: string },
): Builder<Panel> {
  const times = `Time\\${lane}`;
  const query = new DataqueryBuilder().datasource(datasource).refId("A").expr(expr).range();
  return new StateTimelineBuilder()
    .title(shown.title)
    .description(shown.description)
    .unit(shown.unit)
    .noValue(shown.empty)
    .datasource(datasource)
    .span(shown.width ?? 24)
    .height(shown.height)
    .showValue(VisibilityMode.Auto)
    .mergeValues(true)
    .fillOpacity(80)
    .mappings(shown.colours ? [coloursOf(shown.colours)] : [])
    .withTarget(query.format(PromQueryFormat.Table))
    .transformations([
      {
        id: "groupingToMatrix",
        options: { columnField: lane, rowField: "Time", valueField: word, emptyValue: "null" },
      },
      // The matrix has the times as words.
      { id: "convertFieldType", options: { conversions: [{ targetField: times, destinationType: "time" }] } },
    ]);
}

function rangeQuery({ expr, legend }: Query, at: number): DataqueryBuilder {
  const refId = String.fromCodePoint(65 + at);
  return new DataqueryBuilder().datasource(datasource).refId(refId).expr(expr).legendFormat(legend).range();
}

function coloursOf(colours: Readonly<Record<string, string>>): ValueMapping {
  const options = Object.entries(colours).map(([word, color], index) => [word, { color, index }]);
  return { type: MappingType.ValueToText, options: Object.fromEntries(options) as Record<string, object> };
}
