/** The page of nodes, which shows the nodes in trouble first. */
import { useState } from "react";
import type { ConsoleNode } from "../../../../src/surface/contract/console.ts";
import { Badge, type Tone } from "../../elements/badge.tsx";
import { Button } from "../../elements/button.tsx";
import { Empty } from "../../elements/empty.tsx";
import { Page } from "../../elements/page.tsx";
import { ProblemBox } from "../../elements/problem-box.tsx";
import { Table, type Column } from "../../elements/table.tsx";
import { useToast } from "../../elements/toast/toast.tsx";
import { useChange } from "../api.ts";
import { LiveItems } from "../live-mark.tsx";
import { useLive } from "../live.ts";
import { useConsoleTexts } from "../texts.ts";
import { DrainDialog } from "./drain-dialog.tsx";
import { GpuCell } from "./gpu-cell.tsx";
import { nodesLead } from "./nodes-lead.ts";
import { inOrder } from "./node-order.ts";

export default function NodesPage() {
  const texts = useConsoleTexts();
  const { c } = texts;
  const live = useLive("nodes");
  const nodes = inOrder([...(live.items?.values() ?? [])].map(({ value }) => value));
  const [drained, setDrained] = useState<string>();
  const columns = useColumns(setDrained);
  const node = nodes.find(({ name }) => name === drained);
  return (
    <Page title={c.pages.nodes} lead={live.items && nodesLead(nodes, texts)}>
      <LiveItems live={live}>
        {() =>
          nodes.length === 0 ? (
            <Empty title={c.nodes.lead.none} hint={c.nodes.emptyHint} />
          ) : (
            <Table caption={c.pages.nodes} columns={columns} rows={nodes} rowKey={({ name }) => name} />
          )
        }
      </LiveItems>
      {node && <DrainDialog node={node} nodes={nodes} onClose={() => setDrained(undefined)} />}
    </Page>
  );
}

const tones: Readonly<Record<ConsoleNode["state"], Tone>> = {
  live: "good",
  maintenance: "accent",
  "not-admitting": "warn",
  silent: "bad",
  gone: "bad",
};

function useColumns(onDrain: (node: string) => void): readonly Column<ConsoleNode>[] {
  const { t, c, format } = useConsoleTexts();
  const { columns, states, troubles } = c.nodes;
  const { unknown } = t.shell;
  return [
    {
      name: "node",
      title: columns.node,
      cell: ({ name, agentVersion }) => (
        <span className="name-cell node-name">
          <strong>{name}</strong> <small className="reason">{agentVersion}</small>
        </span>
      ),
    },
    {
      name: "state",
      title: columns.state,
      cell: (node) => (
        <div className="node-state">
          <Badge tone={tones[node.state]}>{states[node.state]}</Badge>
          {node.troubles.map((trouble) => (
            <small key={trouble} className="trouble">
              {troubles[trouble]}
            </small>
          ))}
          <DrainProgress node={node} />
        </div>
      ),
    },
    {
      name: "requests",
      title: columns.requests,
      cell: ({ slots }) => {
        const sum = (of: "running" | "waiting") => format.number(slots.reduce((all, slot) => all + slot[of], 0));
        return c.nodes.load(sum("running"), sum("waiting"));
      },
    },
    { name: "gpus", title: columns.gpus, cell: ({ host }) => <GpuCell gpus={host?.gpus ?? []} /> },
    {
      name: "outbox",
      title: columns.outbox,
      cell: ({ outbox }) =>
        outbox ? (
          <span className="number">
            {c.nodes.records(format.number(outbox.records))}
            {outbox.oldestSeconds !== undefined && (
              <small className="reason">{c.nodes.oldest(format.duration(outbox.oldestSeconds))}</small>
            )}
          </span>
        ) : (
          unknown
        ),
    },
    {
      name: "ages",
      title: columns.ages,
      cell: ({ linkAgeSeconds, reportAgeSeconds }) => (
        <span className="number">
          {linkAgeSeconds === undefined ? c.nodes.notLinked : c.nodes.linked(format.duration(linkAgeSeconds))}
          {reportAgeSeconds !== undefined && (
            <small className="reason">{c.nodes.reported(format.duration(reportAgeSeconds))}</small>
          )}
        </span>
      ),
    },
    {
      name: "actions",
      title: columns.actions,
      isTitleHidden: true,
      cell: (node) => <NodeAction node={node} onDrain={onDrain} />,
    },
  ];
}

interface NodeActionProps {
  readonly node: ConsoleNode;
  readonly onDrain: (node: string) => void;
}

function NodeAction({ node: { name, state }, onDrain }: NodeActionProps) {
  const { c } = useConsoleTexts();
  const say = useToast();
  const change = useChange("setMaintenance");
  if (state !== "maintenance")
    return (
      <Button onClick={() => onDrain(name)} aria-label={`${c.nodes.drain} ${name}`}>
        {c.nodes.drain}
      </Button>
    );
  const end = () =>
    change.mutate(
      { body: { node: name, on: false } },
      { onSuccess: (done) => say(done.state === "maintenance" ? c.nodes.stays(name) : c.nodes.isBack(name)) },
    );
  return (
    <>
      <Button busy={change.isPending} onClick={end} aria-label={`${c.nodes.back} ${name}`}>
        {c.nodes.back}
      </Button>
      {change.error && <ProblemBox problem={change.error} />}
    </>
  );
}

/** Shows the progress of a node's drain: running requests, as a share of the most since the drain began. */
function DrainProgress({ node: { name, state, slots } }: { readonly node: ConsoleNode }) {
  const { c, format } = useConsoleTexts();
  const [seen, setSeen] = useState(0);
  const running = slots.reduce((sum, slot) => sum + slot.running, 0);
  const most = state === "maintenance" ? Math.max(seen, running) : 0;
  if (most !== seen) setSeen(most);
  if (state !== "maintenance") return null;
  if (running === 0) return <small className="reason">{c.nodes.drained}</small>;
  const text = c.nodes.draining(format.number(running), format.number(most));
  const ages = slots.flatMap(({ oldestRunningSeconds }) => oldestRunningSeconds ?? []);
  return (
    <>
      <progress aria-label={`${name}: ${text}`} max={most} value={most - running} />
      <small className="reason number">
        {text}
        {ages.length > 0 && `, ${c.slots.oldestRunning(format.duration(Math.max(...ages)))}`}
      </small>
    </>
  );
}
