/** The dialogs of the users page: invite, edit, block, delete, and a link that is shown once. */
import { useChange } from "../../api/queries.ts";
import { Button } from "../../elements/button.tsx";
import { ConfirmByName } from "../../elements/confirm-by-name.tsx";
import { CopyButton } from "../../elements/copy-button.tsx";
import { Dialog } from "../../elements/dialog.tsx";
import { ProblemBox } from "../../elements/problem-box.tsx";
import { useToast } from "../../elements/toast.tsx";
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
    <Dialog title={t.users.form.inviteTitle} onClose={onClose}>
      <UserForm
        submit={t.users.form.submit}
        busy={create.isPending}
        problem={create.error}
        onCancel={onClose}
        onSubmit={(email, wish) => create.mutate({ body: { email, ...wish } })}
      />
    </Dialog>
  );
}

function EditUser({ user, onClose }: OneUserProps) {
  const { t } = useTexts();
  const say = useToast();
  const update = useChange("updateUser", "listUsers");
  return (
    <Dialog title={t.users.form.editTitle(user.email)} onClose={onClose}>
      <UserForm
        before={user}
        submit={t.shell.save}
        busy={update.isPending}
        problem={update.error}
        onCancel={onClose}
        onSubmit={(_email, { role, ...limits }) =>
          update.mutate(
            // A role that is sent ends sessions, so only a new one is.
            { params: { id: user.id }, body: { ...limits, role: role === user.role ? undefined : role } },
            {
              onSuccess: () => {
                say(t.users.changed(user.email));
                onClose();
              },
            },
          )
        }
      />
    </Dialog>
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
    <Confirm title={t.users.newLink} submit={t.users.newLink} change={renew} user={user} onClose={onClose}>
      {user.email}
    </Confirm>
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
    <Confirm title={link.resetTitle} submit={t.users.resetLink} change={make} user={user} onClose={onClose}>
      {user.email}
    </Confirm>
  );
}

function BlockUser({ user, onClose }: OneUserProps) {
  const { t, format } = useTexts();
  const say = useToast();
  const block = useChange("blockUser", "listUsers");
  const { blockDialog } = t.users;
  return (
    <Confirm
      title={blockDialog.title(user.email)}
      submit={blockDialog.submit}
      isBad
      change={block}
      user={user}
      onClose={onClose}
      onDone={() => {
        say(t.users.blocked(user.email));
        onClose();
      }}
    >
      {blockDialog.lead(format.number(user.keys))}
    </Confirm>
  );
}

interface ConfirmProps extends OneUserProps {
  readonly title: string;
  readonly submit: string;
  readonly isBad?: boolean;
  readonly change: Pick<ReturnType<typeof useChange<"blockUser">>, "isPending" | "error"> & {
    readonly mutate: (ask: { params: { id: string } }, options?: { onSuccess?: () => void }) => void;
  };
  readonly onDone?: () => void;
  readonly children: React.ReactNode;
}

function Confirm({ title, submit, isBad, change, user, onClose, onDone, children }: ConfirmProps) {
  const { t } = useTexts();
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{children}</p>
      {change.error && <ProblemBox problem={change.error} />}
      <div className="actions end">
        <Button onClick={onClose}>{t.shell.cancel}</Button>
        <Button
          kind={isBad ? "danger" : "primary"}
          busy={change.isPending}
          onClick={() => change.mutate({ params: { id: user.id } }, { onSuccess: onDone })}
        >
          {submit}
        </Button>
      </div>
    </Dialog>
  );
}

function DeleteUser({ user, onClose }: OneUserProps) {
  const { t } = useTexts();
  const say = useToast();
  const remove = useChange("deleteUser", "listUsers");
  const onSuccess = () => {
    say(t.users.deleted(user.email));
    onClose();
  };
  return (
    <ConfirmByName
      name={user.email}
      texts={t.users.deleteDialog}
      busy={remove.isPending}
      problem={remove.error}
      onConfirm={() => remove.mutate({ params: { id: user.id } }, { onSuccess })}
      onClose={onClose}
    />
  );
}

interface LinkDialogProps extends DialogProps {
  readonly title: string;
  readonly email: string;
  /** null: it was mailed, and nobody else sees it. */
  readonly url: string | null;
  /** null: no mail is sent here. */
  readonly mailed: boolean | null;
}

function LinkDialog({ title, email, url, mailed, onClose }: LinkDialogProps) {
  const { link } = useTexts().t.users;
  const lead = mailed === null ? link.notMailed : !mailed ? link.failed : url === null ? link.onlyMailed : link.mailed;
  return (
    <Dialog title={title} wide>
      <p>{lead(email)}</p>
      {url !== null && (
        <div className="secret">
          <code id="link" aria-label={link.label}>
            {url}
          </code>
          <CopyButton text={url} shownIn="link" kind="primary" />
        </div>
      )}
      <div className="actions end">
        <Button onClick={onClose}>{link.done}</Button>
      </div>
    </Dialog>
  );
}
