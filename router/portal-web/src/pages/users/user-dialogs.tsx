/** The dialogs of the users page: invite, edit, block, delete, and a link that is shown once. */
import { useChange } from "../../api/queries.ts";
import { ConfirmByName } from "../../elements/confirm-by-name.tsx";
import { FormDialog, useDone } from "../../elements/form.tsx";
import { LinkDialog } from "../../elements/link/link-dialog.tsx";
import { useTexts } from "../../messages/messages.ts";
import { UserForm, type ListedUser } from "./user-form.tsx";

export type UserWish =
  | { readonly kind: "invite" }
  | { readonly kind: "edit" | "renew" | "reset" | "block" | "delete"; readonly user: ListedUser };

interface DialogProps {
  readonly onClose: () => void;
}
interface OneUserProps extends DialogProps {
  readonly user: ListedUser;
}

export function UserDialog({ wish, onClose }: DialogProps & { readonly wish: UserWish }) {
  switch (wish.kind) {
    case "invite":
      return <InviteUser onClose={onClose} />;
    case "edit":
      return <EditUser user={wish.user} onClose={onClose} />;
    case "renew":
      return <RenewInvitation user={wish.user} onClose={onClose} />;
    case "reset":
      return <ResetLink user={wish.user} onClose={onClose} />;
    case "block":
      return <BlockUser user={wish.user} onClose={onClose} />;
    case "delete":
      return <DeleteUser user={wish.user} onClose={onClose} />;
  }
}

function InviteUser({ onClose }: DialogProps) {
  const { t } = useTexts();
  const create = useChange("createUser", "listUsers");
  const made = create.data;
  if (made)
    return (
      <LinkDialog
        title={t.users.link.invitationTitle}
        email={made.user.email}
        url={made.invitationUrl}
        mailed={made.mailed}
        onClose={onClose}
      />
    );
  return (
    <UserForm
      title={t.users.form.inviteTitle}
      submit={t.users.form.submit}
      change={create}
      onSubmit={(email, wish) => create.mutate({ body: { email, ...wish } })}
      onClose={onClose}
    />
  );
}

function EditUser({ user, onClose }: OneUserProps) {
  const { t } = useTexts();
  const done = useDone(onClose);
  const update = useChange("updateUser", "listUsers");
  return (
    <UserForm
      before={user}
      title={t.users.form.editTitle(user.email)}
      submit={t.shell.save}
      change={update}
      onSubmit={(_email, { role, ...limits }) =>
        update.mutate(
          // Sends only a changed role, because a role in the request ends sessions.
          { params: { id: user.id }, body: { ...limits, role: role === user.role ? undefined : role } },
          done(t.users.changed(user.email)),
        )
      }
      onClose={onClose}
    />
  );
}

function RenewInvitation({ user, onClose }: OneUserProps) {
  const { t } = useTexts();
  const renew = useChange("renewInvitation", "listUsers");
  const { link } = t.users;
  if (renew.data)
    return (
      <LinkDialog
        title={link.invitationTitle}
        email={user.email}
        url={renew.data.invitationUrl}
        mailed={renew.data.mailed}
        onClose={onClose}
      />
    );
  return (
    <FormDialog
      title={t.users.newLink}
      submit={t.users.newLink}
      change={renew}
      onSubmit={() => renew.mutate({ params: { id: user.id } })}
      onClose={onClose}
    >
      <p>{user.email}</p>
    </FormDialog>
  );
}

function ResetLink({ user, onClose }: OneUserProps) {
  const { t } = useTexts();
  const make = useChange("makeResetLink");
  const { link } = t.users;
  if (make.data)
    return (
      <LinkDialog
        title={link.resetTitle}
        email={user.email}
        url={make.data.resetUrl}
        mailed={make.data.mailed ? true : null}
        onClose={onClose}
      />
    );
  return (
    <FormDialog
      title={link.resetTitle}
      submit={t.users.resetLink}
      change={make}
      onSubmit={() => make.mutate({ params: { id: user.id } })}
      onClose={onClose}
    >
      <p>{user.email}</p>
    </FormDialog>
  );
}

function BlockUser({ user, onClose }: OneUserProps) {
  const { t, format } = useTexts();
  const done = useDone(onClose);
  const block = useChange("blockUser", "listUsers");
  const { blockDialog } = t.users;
  return (
    <FormDialog
      title={blockDialog.title(user.email)}
      submit={blockDialog.submit}
      kind="danger"
      change={block}
      onSubmit={() => block.mutate({ params: { id: user.id } }, done(t.users.blocked(user.email)))}
      onClose={onClose}
    >
      <p>{blockDialog.lead(format.number(user.keys))}</p>
    </FormDialog>
  );
}

function DeleteUser({ user, onClose }: OneUserProps) {
  const { t } = useTexts();
  const done = useDone(onClose);
  const remove = useChange("deleteUser", "listUsers");
  return (
    <ConfirmByName
      name={user.email}
      texts={t.users.deleteDialog}
      change={remove}
      onConfirm={() => remove.mutate({ params: { id: user.id } }, done(t.users.deleted(user.email)))}
      onClose={onClose}
    />
  );
}
