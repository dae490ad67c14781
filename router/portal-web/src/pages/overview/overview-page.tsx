/** Am I fine, and for how long? */
import { Page } from "../../elements/page.tsx";
import { useTexts } from "../../messages/messages.ts";

export default function OverviewPage() {
  const { t } = useTexts();
  return <Page title={t.shell.pages.overview} />;
}
