/** Opens an account, where the operator lets everybody do that. */
import { useMutation } from "@tanstack/react-query";
import { Link, useLocation } from "wouter";
import { call, type Ask } from "../../api/client.ts";
import type { Problem } from "../../api/problem.ts";
import { TextField } from "../../elements/field.tsx";
import { Form } from "../../elements/form.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { fieldText } from "../../messages/problem-text.ts";
import { useTexts } from "../../messages/messages.ts";
import { usePreferences } from "../../session/preferences.tsx";
import { useRead } from "../../api/queries.ts";
import { queryClient } from "../../api/hooks.ts";
import { Entrance } from "./entrance.tsx";

export default function RegistrationPage() {
  const { signIn } = useTexts().t;
  const offers = useRead("signInOffers", {});
  const isOpen = offers.data?.registration;
  const { registration } = signIn;
  return (
    <Entrance
      title={registration.title}
      lead={isOpen === false ? registration.closedLead : isOpen && registration.lead}
    >
      <Loaded read={offers}>{(data) => data.registration && <Registration />}</Loaded>
      <p className="links">
        <Link to="/">{signIn.forgottenPage.backToSignIn}</Link>
      </p>
    </Entrance>
  );
}

function Registration() {
  const texts = useTexts();
  const { signIn } = texts.t;
  const { language } = usePreferences();
  const [, navigate] = useLocation();
  const change = useMutation<void, Problem, Ask<"register">>({
    mutationFn: (ask) => call("register", ask),
    onSuccess: async () => {
      await queryClient.resetQueries({ queryKey: ["session"] });
      navigate("/", { replace: true });
    },
  });
  const error = (param: string) => fieldText(change.error, param, texts);
  return (
    <Form
      submit={signIn.registration.submit}
      busy={change.isPending}
      problem={change.error}
      onSubmit={(values) =>
        change.mutate({
          body: {
            accountName: values["accountName"]!.trim(),
            email: values["email"]!.trim(),
            password: values["password"]!,
            language,
          },
        })
      }
    >
      <TextField
        name="accountName"
        label={signIn.registration.accountName}
        error={error("accountName")}
        autoComplete="organization"
        maxLength={200}
        required
        autoFocus
      />
      <TextField
        name="email"
        type="email"
        label={signIn.email}
        error={error("email")}
        autoComplete="username"
        maxLength={254}
        required
      />
      <TextField
        name="password"
        type="password"
        label={signIn.password}
        hint={signIn.passwordHint}
        error={error("password")}
        autoComplete="new-password"
        minLength={12}
        maxLength={1024}
        required
      />
    </Form>
  );
}
