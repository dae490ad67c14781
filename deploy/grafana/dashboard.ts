/** Builds a dashboard from rows of panels, and from variables that select routers, nodes, slots and models. */
import type { Builder } from "@grafana/grafana-foundation-sdk/cog";
import {
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkType,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  VariableRefresh,
  VariableSort,
  type Dashboard,
  type Panel,
  type VariableModel,
} from "@grafana/grafana-foundation-sdk/dashboard";
import { datasource } from "./panels.ts";

interface Content {
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  readonly variables: readonly (keyof typeof queries)[];
  readonly rows: Readonly<Record<string, readonly Builder<Panel>[]>>;
}

/** Queries for the variables' values. A variable may depend on earlier ones. */
const queries = {
  router: "label_values(weiche_router_parallel_requests, instance)",
  node: "label_values(weiche_agent_maintenance, node)",
  slot: 'label_values(weiche_agent_slot_state{node=~"$node"}, slot)',
  model: "label_values(weiche_router_requests_total, model)",
} as const;

/** Returns a dashboard in the classic form, which every Grafana since version 10 reads from files. */
export function dashboard({ uid, title, description, variables, rows }: Content): Dashboard {
  const builder = new DashboardBuilder(`Weiche: ${title}`)
    .uid(uid)
    .description(description)
    .tags(["weiche"])
    .timezone("browser")
    .time({ from: "now-3h", to: "now" })
    .refresh("30s")
    .tooltip(DashboardCursorSync.Crosshair)
    .readonly()
    .link(
      new DashboardLinkBuilder("Weiche")
        .type(DashboardLinkType.Dashboards)
        .tags(["weiche"])
        .includeVars(true)
        .keepTime(true),
    )
    .variables([sources(), ...variables.map(values)]);
  for (const [name, panels] of Object.entries(rows)) {
    builder.withRow(new RowBuilder(name));
    for (const panel of panels) builder.withPanel(panel);
  }
  const built = builder.build();
  return { ...built, panels: (built.panels ?? []).map((panel, at) => ({ ...panel, id: at + 1 })) };
}

function sources(): Builder<VariableModel> {
  return new DatasourceVariableBuilder("datasource").label("Data source").type("prometheus");
}

function values(name: keyof typeof queries): Builder<VariableModel> {
  return new QueryVariableBuilder(name)
    .label(name)
    .datasource(datasource)
    .query({ query: queries[name], refId: name })
    .definition(queries[name])
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.AlphabeticalAsc)
    .multi(true)
    .includeAll(true)
    .allValue(".*")
    .current({ selected: true, text: "All", value: "$__all" });
}
