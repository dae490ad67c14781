/** Asks for a link by mail, where mail is sent; else says who can make one. */
import { Link } from "wouter";
import { TextField } from "../../elements/field.tsx";
import { Form } from "../../elements/form.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { useTexts } from "../../messages/messages.ts";
import { useChange, useRead } from "../../api/queries.ts";
import { Entrance } from "./entrance.tsx";

export default function ForgottenPage() {
  const { signIn } = useTexts().t;
  const texts = signIn.forgottenPage;
  const offers = useRead("signInOffers", {});
  const change = useChange("requestPasswordReset");
  const back = (
    <p className="links">
      <Link to="/">{texts.backToSignIn}</Link>
    </p>
  );
  if (change.isSuccess)
    return (
      <Entrance key="sent" title={texts.sentTitle} lead={texts.sentLead(change.variables.body.email)}>
        {back}
      </Entrance>
    );
  const hasMail = offers.data?.resetByMail;
  return (
    <Entrance title={texts.title} lead={hasMail === false ? texts.noMailLead : hasMail && texts.lead}>
      <Loaded read={offers}>
        {({ resetByMail }) =>
          resetByMail && (
            <Form
              submit={texts.submit}
              busy={change.isPending}
              problem={change.error}
              onSubmit={({ email }) => change.mutate({ body: { email: email!.trim() } })}
            >
              <TextField
                name="email"
                type="email"
                label={signIn.email}
                autoComplete="username"
                maxLength={254}
                required
                autoFocus
              />
            </Form>
          )
        }
      </Loaded>
      {back}
    </Entrance>
  );
}
