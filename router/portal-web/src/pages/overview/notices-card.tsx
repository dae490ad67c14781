/** The newest unread notices. */
import { Link } from "wouter";
import { useChange, useRead } from "../../api/queries.ts";
import { Button } from "../../elements/button.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { NoticeAction } from "../../elements/notice/notice-action.tsx";
import { noticeText } from "../../messages/notice-text.ts";
import { useTexts } from "../../messages/messages.ts";
import { unreadNotices } from "../../session/unread-notices.ts";

export function NoticesCard() {
  const texts = useTexts();
  const { t, format } = texts;
  const read = useRead("listNotices", unreadNotices);
  const change = useChange("readNotices", "listNotices");
  return (
    <section className="card" aria-labelledby="notices">
      <h2 id="notices">{t.overview.notices}</h2>
      <Loaded read={read}>
        {({ items, unread }) =>
          items.length === 0 ? (
            <p className="soft">{t.notices.leadNone}</p>
          ) : (
            <>
              <ul className="rows">
                {items.map((notice) => (
                  <li key={notice.id} className="with-action">
                    <span>
                      {noticeText(notice, texts)}
                      <small>{format.dateTime(notice.at)}</small>
                    </span>
                    <span className="actions">
                      <NoticeAction notice={notice} />
                      <Button
                        kind="quiet"
                        aria-label={t.overview.dismissNotice(noticeText(notice, texts))}
                        onClick={() => change.mutate({ body: { ids: [notice.id] } })}
                      >
                        {t.overview.dismiss}
                      </Button>
                    </span>
                  </li>
                ))}
              </ul>
              {unread > items.length && <Link to="/notices">{t.notices.lead(format.number(unread))}</Link>}
            </>
          )
        }
      </Loaded>
    </section>
  );
}
