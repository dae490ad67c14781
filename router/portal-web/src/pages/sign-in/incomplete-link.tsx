/** What somebody sees whose link lost its end on the way. */
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
