/** The page to open an account, if the operator allows registration. */
import { EmailField, NewPasswordField } from "../../elements/credential-fields.tsx";
import { TextField } from "../../elements/field.tsx";
import { Form } from "../../elements/form.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { fieldText } from "../../messages/problem-text.ts";
import { useTexts } from "../../messages/messages.ts";
import { usePreferences } from "../../session/preferences.tsx";
import { useRead } from "../../api/queries.ts";
import { Entrance } from "../../shell/entrance.tsx";
import { BackToSignIn } from "./link-over.tsx";
import { useEntry } from "./use-entry.ts";

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
      <BackToSignIn />
    </Entrance>
  );
}

function Registration() {
  const texts = useTexts();
  const { signIn } = texts.t;
  const { language } = usePreferences();
  const change = useEntry("register");
  const error = (param: string) => fieldText(change.error, param, texts);
  return (
    <Form
      submit={signIn.registration.submit}
      change={change}
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
      <EmailField error={error("email")} />
      <NewPasswordField change={change} />
    </Form>
  );
}
