/** Where the link for a new password leads. */
import { Link } from "wouter";
import { TextField } from "../../elements/field.tsx";
import { Form } from "../../elements/form.tsx";
import { fieldText } from "../../messages/problem-text.ts";
import { useTexts } from "../../messages/messages.ts";
import { useChange } from "../../api/queries.ts";
import { Entrance } from "./entrance.tsx";
import { IncompleteLink } from "./incomplete-link.tsx";
import { useLinkToken } from "./link-token.ts";

export default function ResetPage() {
  const texts = useTexts();
  const { signIn } = texts.t;
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
        busy={change.isPending}
        problem={change.error}
        onSubmit={({ password }) => change.mutate({ body: { token, password: password! } })}
      >
        <TextField
          name="password"
          type="password"
          label={signIn.newPassword}
          hint={signIn.passwordHint}
          error={fieldText(change.error, "password", texts)}
          autoComplete="new-password"
          minLength={12}
          maxLength={1024}
          required
          autoFocus
        />
      </Form>
    </Entrance>
  );
}
