/** The page of a password-reset link. */
import { Link } from "wouter";
import { NewPasswordField } from "../../elements/credential-fields.tsx";
import { Skeleton } from "../../elements/loaded.tsx";
import { ProblemBox } from "../../elements/problem-box.tsx";
import { Form } from "../../elements/form.tsx";
import { useTexts } from "../../messages/messages.ts";
import { useChange, useRead } from "../../api/queries.ts";
import { Entrance } from "../../shell/entrance.tsx";
import { IncompleteLink } from "./link-over.tsx";
import { useLinkToken } from "./link-token.ts";

export default function ResetPage() {
  const token = useLinkToken();
  if (!token) return <IncompleteLink />;
  return <Reset key={token} token={token} />;
}

/** A link that works no more is told before anybody chooses a password for it. */
function Reset({ token }: { readonly token: string }) {
  const { signIn } = useTexts().t;
  const preview = useRead("previewReset", { body: { token } });
  const change = useChange("resetPassword");
  const isOver = change.error?.status === 404 || (!change.isSuccess && preview.error?.status === 404);
  if (change.isSuccess || isOver)
    return (
      <Entrance
        key="end"
        title={isOver ? signIn.reset.overTitle : signIn.reset.doneTitle}
        lead={isOver ? signIn.reset.overLead : signIn.reset.doneLead}
      >
        <p className="links">
          <Link to="/" className="button primary">
            {signIn.submit}
          </Link>
          {isOver && <Link to="/forgotten">{signIn.forgotten}</Link>}
        </p>
      </Entrance>
    );
  if (!preview.data)
    return (
      <Entrance title={signIn.reset.title}>
        {preview.error ? <ProblemBox problem={preview.error} onRetry={() => preview.refetch()} /> : <Skeleton />}
      </Entrance>
    );
  return (
    <Entrance title={signIn.reset.title} lead={signIn.reset.lead}>
      <Form
        submit={signIn.reset.submit}
        change={change}
        onSubmit={({ password }) => change.mutate({ body: { token, password: password! } })}
      >
        <NewPasswordField label={signIn.newPassword} change={change} autoFocus />
      </Form>
    </Entrance>
  );
}
