/** The page to open an account, if the operator allows registration. */
import { EmailField, NewPasswordField } from "../../elements/credential-fields.tsx";
import { TextField } from "../../elements/field.tsx";
import { Form } from "../../elements/form.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { fieldText } from "../../messages/problem-text.ts";
import { useTexts } from "../../messages/messages.ts";
import { usePreferences } from "../../session/preferences.tsx";
import { useState } from "react";
import type { Answer } from "../../api/client.ts";
import { useChange, useRead } from "../../api/queries.ts";
import { Entrance } from "../../shell/entrance.tsx";
import { BackToSignIn } from "./link-over.tsx";
import { useEntry } from "./use-entry.ts";

export default function RegistrationPage() {
  const { signIn } = useTexts().t;
  const offers = useRead("signInOffers", {});
  const [mailedTo, setMailedTo] = useState<string>();
  const isOpen = offers.data?.registration;
  const { registration, forgottenPage } = signIn;
  if (mailedTo !== undefined)
    return (
      <Entrance key="mailed" title={forgottenPage.sentTitle} lead={registration.mailedLead(mailedTo)}>
        <BackToSignIn />
      </Entrance>
    );
  return (
    <Entrance
      title={registration.title}
      lead={isOpen === false ? registration.closedLead : isOpen && registration.lead}
    >
      <Loaded read={offers}>
        {(data) => data.registration && <Registration offers={data} onMailed={setMailedTo} />}
      </Loaded>
      <BackToSignIn />
    </Entrance>
  );
}

interface RegistrationProps {
  readonly offers: Answer<"signInOffers">;
  /** Called with the address to which a link was mailed. */
  readonly onMailed: (email: string) => void;
}

function Registration({ offers: { resetByMail: isMailed, terms }, onMailed }: RegistrationProps) {
  const texts = useTexts();
  const { registration } = texts.t.signIn;
  const { language } = usePreferences();
  const direct = useEntry("register");
  const mailed = useChange("register");
  const change = isMailed ? mailed : direct;
  const error = (param: string) => fieldText(change.error, param, texts);
  return (
    <Form
      submit={isMailed ? registration.submitMail : registration.submit}
      change={change}
      onSubmit={({ accountName = "", email = "", password, termsAccepted }) => {
        const body = {
          accountName: accountName.trim(),
          email: email.trim(),
          ...(!isMailed && { password: password! }),
          ...(termsAccepted && { termsAccepted: true as const }),
          language,
        };
        if (isMailed) mailed.mutate({ body }, { onSuccess: () => onMailed(body.email) });
        else direct.mutate({ body });
      }}
    >
      <TextField
        name="accountName"
        label={registration.accountName}
        error={error("accountName")}
        autoComplete="organization"
        maxLength={200}
        required
        autoFocus
      />
      <EmailField error={error("email")} />
      {!isMailed && <NewPasswordField change={change} />}
      {terms !== null && (
        <p className="choices">
          <label>
            <input type="checkbox" name="termsAccepted" required />
            {registration.accept}
          </label>{" "}
          <a href={terms} target="_blank" rel="noreferrer">
            {registration.terms}
          </a>
          {error("termsAccepted") && <span className="field-error">{error("termsAccepted")}</span>}
        </p>
      )}
    </Form>
  );
}
