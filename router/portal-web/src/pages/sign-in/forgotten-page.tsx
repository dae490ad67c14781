/** Requests a password link by mail. If the router sends no mail, names who can make one. */
import { EmailField } from "../../elements/credential-fields.tsx";
import { Form } from "../../elements/form.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { useTexts } from "../../messages/messages.ts";
import { useChange, useRead } from "../../api/queries.ts";
import { Entrance } from "../../shell/entrance.tsx";
import { BackToSignIn } from "./link-over.tsx";

export default function ForgottenPage() {
  const { signIn } = useTexts().t;
  const texts = signIn.forgottenPage;
  const offers = useRead("signInOffers", {});
  const change = useChange("requestPasswordReset");
  if (change.isSuccess)
    return (
      <Entrance key="sent" title={texts.sentTitle} lead={texts.sentLead(change.variables.body.email)}>
        <BackToSignIn />
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
              change={change}
              onSubmit={({ email }) => change.mutate({ body: { email: email!.trim() } })}
            >
              <EmailField autoFocus />
            </Form>
          )
        }
      </Loaded>
      <BackToSignIn />
    </Entrance>
  );
}
