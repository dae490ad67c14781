/** The page of an invitation link. The button uses the link up, opening it does not. */
import { NewPasswordField } from "../../elements/credential-fields.tsx";
import { Form } from "../../elements/form.tsx";
import { Skeleton } from "../../elements/loaded.tsx";
import { ProblemBox } from "../../elements/problem-box.tsx";
import { useTexts } from "../../messages/messages.ts";
import { usePreferences } from "../../session/preferences.tsx";
import { useRead } from "../../api/queries.ts";
import { Entrance } from "../../shell/entrance.tsx";
import { IncompleteLink, InvitationOver } from "./link-over.tsx";
import { useLinkToken } from "./link-token.ts";
import { useEntry } from "./use-entry.ts";

export default function InvitationPage() {
  const token = useLinkToken();
  if (!token) return <IncompleteLink />;
  return <Invitation token={token} />;
}

function Invitation({ token }: { readonly token: string }) {
  const { t, format } = useTexts();
  const { invitation } = t.signIn;
  const { language } = usePreferences();
  const preview = useRead("previewInvitation", { body: { token } });
  const join = useEntry("acceptInvitation");
  const isOver = preview.error?.status === 404 || (preview.data && preview.data.state !== "open");
  if (isOver) return <InvitationOver />;
  if (preview.error || !preview.data)
    return (
      <Entrance title={invitation.loadingTitle}>
        {preview.error ? <ProblemBox problem={preview.error} onRetry={() => preview.refetch()} /> : <Skeleton />}
      </Entrance>
    );
  const { accountName, email, role, expiresAt } = preview.data;
  return (
    <Entrance
      key={accountName}
      title={invitation.title(accountName)}
      lead={invitation.lead(email, t.shell.roles[role])}
    >
      <Form
        submit={invitation.submit}
        change={join}
        onSubmit={({ password }) => join.mutate({ body: { token, password: password!, language } })}
      >
        <input type="hidden" name="username" autoComplete="username" value={email} readOnly />
        <NewPasswordField change={join} autoFocus />
      </Form>
      <p className="hint">{invitation.until(format.dateTime(expiresAt))}</p>
    </Entrance>
  );
}
