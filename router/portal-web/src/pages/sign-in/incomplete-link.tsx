/** The page for a link that was cut off and lacks its token. */
import { Link } from "wouter";
import { useTexts } from "../../messages/messages.ts";
import { Entrance } from "./entrance.tsx";

export function IncompleteLink() {
  const { signIn } = useTexts().t;
  return (
    <Entrance title={signIn.invitation.missingTitle} lead={signIn.invitation.missingLead}>
      <p className="links">
        <Link to="/">{signIn.forgottenPage.backToSignIn}</Link>
      </p>
    </Entrance>
  );
}
