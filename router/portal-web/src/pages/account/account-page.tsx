/** The page of the user's own settings: password, second factor, devices, language and theme. */
import type { Answer } from "../../api/client.ts";
import { useChange, useRead } from "../../api/queries.ts";
import { Badge } from "../../elements/badge.tsx";
import { Button } from "../../elements/button.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { useNow } from "../../time/now.ts";
import { Page } from "../../elements/page.tsx";
import { useTexts } from "../../messages/messages.ts";
import { forgetAll } from "../../session/kept-in-tab.ts";
import { useSession } from "../../session/session.ts";
import { deviceName } from "./device-name.ts";
import { NameCard } from "./name-card.tsx";
import { MailsCard } from "./mails-card.tsx";
import { PasswordCard } from "./password-card.tsx";
import { SettingsCard } from "./settings-card.tsx";
import { TotpCard } from "./totp-card.tsx";

export default function AccountPage() {
  const { t } = useTexts();
  const { user } = useSession();
  const profile = useRead("profile", {});
  return (
    <Page title={t.shell.pages.account} lead={t.account.lead(user.email, t.shell.roles[user.role])}>
      <div className="sections">
        <SettingsCard />
        <Loaded read={profile}>
          {(data) => (
            <>
              <NameCard profile={data} />
              <PasswordCard profile={data} />
              <TotpCard profile={data} />
              <MailsCard profile={data} />
            </>
          )}
        </Loaded>
        <DevicesCard />
      </div>
    </Page>
  );
}

function DevicesCard() {
  const { t } = useTexts();
  const read = useRead("devices", {});
  const everywhere = useChange("signOutEverywhere");
  return (
    <section className="card" aria-labelledby="devices">
      <h2 id="devices">{t.account.devices.title}</h2>
      <Loaded read={read}>
        {({ items }) => (
          <ul className="rows">
            {items.map((device) => (
              <DeviceRow key={device.id} device={device} />
            ))}
          </ul>
        )}
      </Loaded>
      <div className="actions">
        <Button
          busy={everywhere.isPending}
          onClick={() => {
            forgetAll();
            everywhere.mutate({}, { onSuccess: () => location.assign("/") });
          }}
        >
          {t.account.devices.everywhere}
        </Button>
      </div>
    </section>
  );
}

function DeviceRow({ device }: { readonly device: Answer<"devices">["items"][number] }) {
  const { t, format } = useTexts();
  const { devices } = t.account;
  const nowMs = useNow();
  const end = useChange("endDevice", "devices");
  const name = deviceName(device.agent) ?? devices.unknown;
  return (
    <li className="with-action">
      <span>
        {name} {device.current && <Badge tone="accent">{devices.current}</Badge>}
        <small>
          {device.source} · {devices.seen(format.relative(device.seenAt, nowMs))}
        </small>
      </span>
      {!device.current && (
        <Button
          busy={end.isPending}
          aria-label={devices.endOf(name)}
          onClick={() => end.mutate({ params: { id: device.id } })}
        >
          {devices.end}
        </Button>
      )}
    </li>
  );
}
