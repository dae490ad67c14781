/** The page of a link that confirms an address. The button opens the account, opening the page does not. */
import { useRead } from "../../api/queries.ts";
import { NewPasswordField } from "../../elements/credential-fields.tsx";
import { Form } from "../../elements/form.tsx";
import { Skeleton } from "../../elements/loaded.tsx";
import { ProblemBox } from "../../elements/problem-box.tsx";
import { useTexts } from "../../messages/messages.ts";
import { usePreferences } from "../../session/preferences.tsx";
import { Entrance } from "../../shell/entrance.tsx";
import { BackToSignIn, IncompleteLink } from "./link-over.tsx";
import { useLinkToken } from "./link-token.ts";
import { useEntry } from "./use-entry.ts";

export default function ConfirmPage() {
  const token = useLinkToken();
  if (!token) return <IncompleteLink />;
  return <Confirmation token={token} />;
}

function Confirmation({ token }: { readonly token: string }) {
  const { t, format } = useTexts();
  const { registration, invitation } = t.signIn;
  const { language } = usePreferences();
  const preview = useRead("previewRegistration", { body: { token } });
  const change = useEntry("confirmRegistration");
  if (preview.error?.status === 404)
    return (
      <Entrance title={invitation.overTitle} lead={registration.overLead}>
        <BackToSignIn />
      </Entrance>
    );
  if (!preview.data)
    return (
      <Entrance title={registration.title}>
        {preview.error ? <ProblemBox problem={preview.error} onRetry={() => preview.refetch()} /> : <Skeleton />}
      </Entrance>
    );
  const { accountName, email, expiresAt } = preview.data;
  return (
    <Entrance key={accountName} title={registration.confirmTitle(accountName)} lead={registration.confirmLead(email)}>
      <Form
        submit={registration.submit}
        change={change}
        onSubmit={({ password }) => change.mutate({ body: { token, password: password!, language } })}
      >
        <input type="hidden" name="username" autoComplete="username" value={email} readOnly />
        <NewPasswordField change={change} autoFocus />
      </Form>
      <p className="hint">{invitation.until(format.dateTime(expiresAt))}</p>
    </Entrance>
  );
}
