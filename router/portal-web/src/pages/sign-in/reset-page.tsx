/** The page of a password-reset link. */
import { Link } from "wouter";
import { NewPasswordField } from "../../elements/credential-fields.tsx";
import { Form } from "../../elements/form.tsx";
import { useTexts } from "../../messages/messages.ts";
import { useChange } from "../../api/queries.ts";
import { Entrance } from "../../shell/entrance.tsx";
import { IncompleteLink } from "./link-over.tsx";
import { useLinkToken } from "./link-token.ts";

export default function ResetPage() {
  const { signIn } = useTexts().t;
  const token = useLinkToken();
  const change = useChange("resetPassword");
  if (!token) return <IncompleteLink />;
  const isOver = change.error?.status === 404;
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
