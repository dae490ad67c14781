/** The field for messages with images, and the button that sends them or stops the answers. */
import { useId, useRef, useState } from "react";
import { useRead } from "../../api/queries.ts";
import { Button } from "../../elements/button.tsx";
import { Icon } from "../../elements/icons.tsx";
import { useTexts } from "../../messages/messages.ts";
import { readSettings } from "./chat-settings.ts";
import type { ChosenLane, Conversation } from "./conversation.ts";
import type { Model } from "./lane-head.tsx";
import { addedPictures, Thumbnail, type PictureRules } from "./pictures.tsx";
import { isCalling, type Picture } from "./turns.ts";

interface ComposerProps {
  readonly conversation: Conversation;
  readonly models: readonly Model[];
  readonly chosen: readonly ChosenLane[];
}

export function Composer({ conversation, models, chosen }: ComposerProps) {
  const { t, format } = useTexts();
  const { isRunning, draft, pictures, settings, store } = conversation;
  const id = useId();
  const files = useRef<HTMLInputElement>(null);
  const [fault, setFault] = useState<string>();
  const takers = models.filter(({ images }) => images !== null);
  const service = useRead("showService", {}, { enabled: takers.length > 0 });
  const rules = rulesOf(models, service.data?.limits.bodyBytes);
  const sent = chosen[0]!.turns.flatMap((turn) => (turn.kind === "question" ? turn.pictures : []));
  const add = async (chosenFiles: Iterable<File>) => {
    const added = await addedPictures([...chosenFiles], { kept: pictures, sent }, rules!);
    store.keep({ pictures: [...pictures, ...added.pictures] });
    setFault(
      added.fault &&
        t.chat.imageFaults[added.fault.kind](
          added.fault.name,
          format.list(rules!.formats),
          format.number(added.fault.limit),
        ),
    );
  };
  const send = () => {
    if (isRunning || (draft.trim() === "" && pictures.length === 0)) return;
    if (Object.keys(readSettings(settings).faults).length > 0) {
      store.keep({ isFaultShown: true });
      return setFault(t.chat.settingsFaulty);
    }
    if (chosen.some(({ turns }) => isCalling(turns.at(-1)))) return setFault(t.chat.resultsMissing);
    setFault(undefined);
    store.send(chosen);
  };
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {fault && (
        <p className="field-error" id={`${id}-fault`} role="alert">
          {fault}
        </p>
      )}
      {conversation.isTooLarge && <p className="soft">{t.chat.tooLarge}</p>}
      {pictures.length > 0 && (
        <Pictures
          pictures={pictures}
          onRemove={(picture) => store.keep({ pictures: pictures.filter((one) => one !== picture) })}
        />
      )}
      <label htmlFor={id} className="hidden">
        {t.chat.message}
      </label>
      <textarea
        id={id}
        rows={3}
        maxLength={100_000}
        placeholder={t.chat.placeholder}
        aria-describedby={fault && `${id}-fault`}
        value={draft}
        onChange={({ target }) => store.keep({ draft: target.value })}
        onPaste={(event) => {
          if (!rules || event.clipboardData.files.length === 0) return;
          event.preventDefault();
          void add(event.clipboardData.files);
        }}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
          event.preventDefault();
          send();
        }}
      />
      <div className="composer-buttons">
        {rules && (
          <>
            <input
              ref={files}
              type="file"
              hidden
              multiple
              accept={rules.formats.map((one) => `image/${one}`).join(",")}
              aria-label={t.chat.attach}
              onChange={({ target }) => {
                void add(target.files ?? []);
                target.value = "";
              }}
            />
            <Button onClick={() => files.current!.click()}>
              <Icon name="image" />
              {t.chat.attach}
            </Button>
          </>
        )}
        {isRunning ? (
          <Button key="stop" onClick={store.stop}>
            <Icon name="stop" />
            {t.chat.stop}
          </Button>
        ) : (
          <Button key="send" type="submit" kind="primary">
            <Icon name="send" />
            {t.chat.send}
          </Button>
        )}
      </div>
    </form>
  );
}

interface PicturesProps {
  readonly pictures: readonly Picture[];
  readonly onRemove: (picture: Picture) => void;
}

function Pictures({ pictures, onRemove }: PicturesProps) {
  const { t } = useTexts();
  return (
    <ul className="pictures" aria-label={t.chat.attached}>
      {pictures.map((picture) => (
        <li key={picture.url}>
          <Thumbnail url={picture.url} />
          <span>{picture.name}</span>
          <Button
            kind="quiet"
            className="icon-only"
            aria-label={t.chat.detach(picture.name)}
            onClick={() => onRemove(picture)}
          >
            <Icon name="close" />
          </Button>
        </li>
      ))}
    </ul>
  );
}

/** What all models accept; undefined if one takes no images. */
function rulesOf(models: readonly Model[], bodyBytes = 20 << 20): PictureRules | undefined {
  const [first, ...others] = models.map(({ images }) => images);
  if (!first || others.includes(null)) return undefined;
  return {
    max: Math.min(first.max, ...others.map((one) => one!.max)),
    formats: first.formats.filter((format) => others.every((one) => one!.formats.includes(format))),
    bodyBytes,
  };
}
