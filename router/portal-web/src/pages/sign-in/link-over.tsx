/** Pages for links of e-mails that lead nowhere, and the way back to the sign-in. */
import { Link } from "wouter";
import { useTexts } from "../../messages/messages.ts";
import { Entrance } from "../../shell/entrance.tsx";

/** A link that was cut off and lacks its token. */
export function IncompleteLink() {
  const { invitation } = useTexts().t.signIn;
  return (
    <Entrance title={invitation.missingTitle} lead={invitation.missingLead}>
      <BackToSignIn />
    </Entrance>
  );
}

/** An invitation that was used or withdrawn, or is too old. */
export function InvitationOver() {
  const { invitation } = useTexts().t.signIn;
  return (
    <Entrance title={invitation.overTitle} lead={invitation.overLead}>
      <BackToSignIn />
    </Entrance>
  );
}

export function BackToSignIn() {
  const { signIn } = useTexts().t;
  return (
    <p className="links">
      <Link to="/">{signIn.forgottenPage.backToSignIn}</Link>
    </p>
  );
}
