/** Where the link of an invitation leads: it is used up by the button, not by opening it. */
import { useMutation } from "@tanstack/react-query";
import { Link, useLocation } from "wouter";
import { call } from "../../api/client.ts";
import type { Problem } from "../../api/problem.ts";
import { TextField } from "../../elements/field.tsx";
import { Form } from "../../elements/form.tsx";
import { Skeleton } from "../../elements/loaded.tsx";
import { ProblemBox } from "../../elements/problem-box.tsx";
import { fieldText } from "../../messages/problem-text.ts";
import { useTexts } from "../../messages/messages.ts";
import { usePreferences } from "../../session/preferences.tsx";
import { useRead } from "../../api/queries.ts";
import { queryClient } from "../../api/hooks.ts";
import { Entrance } from "./entrance.tsx";
import { IncompleteLink } from "./incomplete-link.tsx";
import { useLinkToken } from "./link-token.ts";

export default function InvitationPage() {
  const token = useLinkToken();
  if (!token) return <IncompleteLink />;
  return <Invitation token={token} />;
}

function Invitation({ token }: { readonly token: string }) {
  const texts = useTexts();
  const { t, format } = texts;
  const { invitation } = t.signIn;
  const { language } = usePreferences();
  const [, navigate] = useLocation();
  const preview = useRead("previewInvitation", { body: { token } });
  const join = useMutation<void, Problem, string>({
    mutationFn: (password) => call("acceptInvitation", { body: { token, password, language } }),
    onSuccess: async () => {
      await queryClient.resetQueries({ queryKey: ["session"] });
      navigate("/", { replace: true });
    },
  });
  const isOver = preview.error?.status === 404 || (preview.data && preview.data.state !== "open");
  if (isOver) return <Over />;
  if (preview.error)
    return (
      <Entrance title={invitation.loadingTitle}>
        <ProblemBox problem={preview.error} onRetry={() => preview.refetch()} />
      </Entrance>
    );
  if (!preview.data)
    return (
      <Entrance title={invitation.loadingTitle}>
        <Skeleton />
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
        busy={join.isPending}
        problem={join.error}
        onSubmit={({ password }) => join.mutate(password!)}
      >
        <input type="hidden" name="username" autoComplete="username" value={email} readOnly />
        <TextField
          name="password"
          type="password"
          label={t.signIn.password}
          hint={t.signIn.passwordHint}
          error={fieldText(join.error, "password", texts)}
          autoComplete="new-password"
          minLength={12}
          maxLength={1024}
          required
          autoFocus
        />
      </Form>
      <p className="hint">{invitation.until(format.dateTime(expiresAt))}</p>
    </Entrance>
  );
}

function Over() {
  const { t } = useTexts();
  return (
    <Entrance title={t.signIn.invitation.overTitle} lead={t.signIn.invitation.overLead}>
      <p className="links">
        <Link to="/">{t.signIn.forgottenPage.backToSignIn}</Link>
      </p>
    </Entrance>
  );
}
