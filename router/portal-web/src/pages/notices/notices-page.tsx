/** The page of notices. */
import { useChange, useRead } from "../../api/queries.ts";
import { Badge } from "../../elements/badge.tsx";
import { Button } from "../../elements/button.tsx";
import { Empty } from "../../elements/empty.tsx";
import { useListState } from "../../elements/list-state.ts";
import { Loaded } from "../../elements/loaded.tsx";
import { NoticeAction } from "../../elements/notice/notice-action.tsx";
import { noticeText } from "../../messages/notice-text.ts";
import { Page } from "../../elements/page.tsx";
import { Pages } from "../../elements/table.tsx";
import { useTexts } from "../../messages/messages.ts";

export default function NoticesPage() {
  const texts = useTexts();
  const { t, format } = texts;
  const list = useListState();
  const read = useRead("listNotices", { query: { page: list.page } });
  const change = useChange("readNotices", "listNotices");
  const unread = read.data?.unread ?? 0;
  return (
    <Page
      title={t.shell.pages.notices}
      lead={read.data && (unread > 0 ? t.notices.lead(format.number(unread)) : t.notices.leadNone)}
      actions={
        unread > 0 && (
          <Button busy={change.isPending} onClick={() => change.mutate({})}>
            {t.notices.readAll}
          </Button>
        )
      }
    >
      <Loaded read={read}>
        {(notices) =>
          notices.items.length === 0 ? (
            <Empty title={t.notices.empty} hint={t.notices.emptyHint} />
          ) : (
            <>
              <ul className="rows card">
                {notices.items.map((notice) => (
                  <li key={notice.id} className="with-action">
                    <span>
                      {!notice.read && <Badge tone="accent">{t.notices.unread}</Badge>} {noticeText(notice, texts)}
                      <small>{format.dateTime(notice.at)}</small>
                    </span>
                    {!notice.read && (
                      <span className="actions">
                        <NoticeAction notice={notice} />
                        <Button kind="quiet" onClick={() => change.mutate({ body: { ids: [notice.id] } })}>
                          {t.notices.read}
                        </Button>
                      </span>
                    )}
                  </li>
                ))}
              </ul>
              <Pages state={list} list={notices} />
            </>
          )
        }
      </Loaded>
    </Page>
  );
}
