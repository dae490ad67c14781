/** The sign-in page. It replaces the requested page, which is shown afterwards. */
import { Link } from "wouter";
import { useTexts } from "../../messages/messages.ts";
import { useRead } from "../../api/queries.ts";
import { Entrance } from "../../shell/entrance.tsx";
import { SignInForm } from "./sign-in-form.tsx";

export function SignInPage({ onSignedIn }: { readonly onSignedIn: () => void }) {
  const { t } = useTexts();
  const { data: offers } = useRead("signInOffers", {});
  return (
    <Entrance title={t.signIn.title}>
      <SignInForm onSignedIn={onSignedIn} />
      <p className="links">
        <Link to="/forgotten">{t.signIn.forgotten}</Link>
        {offers?.registration && <Link to="/registration">{t.signIn.register}</Link>}
      </p>
    </Entrance>
  );
}
