/** Pages for invalid links from e-mails, with a link to the sign-in. */
import { Link } from "wouter";
import { useTexts } from "../../messages/messages.ts";
import { Entrance } from "../../shell/entrance.tsx";

/** The page for a link without its token. */
export function IncompleteLink() {
  const { invitation } = useTexts().t.signIn;
  return (
    <Entrance title={invitation.missingTitle} lead={invitation.missingLead}>
      <BackToSignIn />
    </Entrance>
  );
}

/** The page for an invitation that was used or withdrawn, or has expired. */
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
