/** The page of the capacity: what the last week would have been on the fleet as it is. */
import type { ConsoleCapacity } from "../../../../src/surface/contract/console.ts";
import { Button } from "../../elements/button.tsx";
import { Empty } from "../../elements/empty.tsx";
import { Page } from "../../elements/page.tsx";
import { ProblemBox } from "../../elements/problem-box.tsx";
import { useChange } from "../api.ts";
import { LiveItems } from "../live-mark.tsx";
import { useLive } from "../live.ts";
import { useConsoleTexts } from "../texts.ts";
import { CapacityAnswer } from "./capacity-answer.tsx";

export default function CapacityPage() {
  const { c } = useConsoleTexts();
  const live = useLive("capacity");
  const capacity = live.items?.get("capacity")?.value;
  const [start, cancel] = [useChange("startCapacity"), useChange("cancelCapacity")];
  const lead = useLead(capacity);
  const action =
    capacity?.step === "idle" ? (
      <Button kind="primary" busy={start.isPending} onClick={() => start.mutate({})}>
        {capacity.answer ? c.capacity.again : c.capacity.start}
      </Button>
    ) : (
      <Button busy={cancel.isPending} onClick={() => cancel.mutate({})}>
        {c.capacity.cancel}
      </Button>
    );
  const problem = start.error ?? cancel.error;
  return (
    <Page title={c.pages.capacity} lead={lead} actions={capacity && action}>
      {problem && <ProblemBox problem={problem} />}
      <LiveItems live={live}>{() => capacity && <Outcome capacity={capacity} />}</LiveItems>
    </Page>
  );
}

function useLead(capacity: ConsoleCapacity | undefined): string | undefined {
  const { c, format } = useConsoleTexts();
  const { lead } = c.capacity;
  if (!capacity) return undefined;
  if (capacity.step !== "idle") return lead[capacity.step](format.percent(capacity.share));
  const { answer } = capacity;
  if (!answer) return undefined;
  const [worst] = answer.slots;
  if (answer.isWaiting && worst)
    return lead.bottleneck(c.slots.name(worst.node, worst.slot), format.percent(worst.waitShare));
  return lead.none(format.duration(Math.max(0, ...answer.models.map(({ waitP99Seconds }) => waitP99Seconds))));
}

function Outcome({ capacity: { step, share, problem, wasCancelled, answer } }: { readonly capacity: ConsoleCapacity }) {
  const { c } = useConsoleTexts();
  const texts = c.capacity;
  const isIdle = step === "idle";
  return (
    <>
      {!isIdle && <progress className="capacity-progress" aria-label={c.pages.capacity} value={share} max={1} />}
      {isIdle && problem && problem !== "no-usage" && (
        <p className="problem" role="alert">
          {texts.problems[problem]}
        </p>
      )}
      {isIdle && wasCancelled && <output>{texts.cancelled}</output>}
      {answer && <CapacityAnswer answer={answer} />}
      {isIdle && !answer && (
        <Empty title={texts.empty} hint={problem === "no-usage" ? texts.problems[problem] : texts.emptyHint} />
      )}
    </>
  );
}
