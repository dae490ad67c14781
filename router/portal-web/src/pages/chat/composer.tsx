/** The field for messages, with a button to stop the answer. */
import { useId } from "react";
import { Button } from "../../elements/button.tsx";
import { Icon } from "../../elements/icons.tsx";
import { useTexts } from "../../messages/messages.ts";

interface ComposerProps {
  readonly isRunning: boolean;
  readonly text: string;
  readonly onType: (text: string) => void;
  readonly onSend: (text: string) => void;
  readonly onStop: () => void;
}

export function Composer({ isRunning, text, onType, onSend, onStop }: ComposerProps) {
  const { t } = useTexts();
  const id = useId();
  const send = () => {
    if (isRunning || text.trim() === "") return;
    onSend(text);
  };
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <label htmlFor={id} className="hidden">
        {t.chat.message}
      </label>
      <textarea
        id={id}
        rows={3}
        maxLength={100_000}
        placeholder={t.chat.placeholder}
        value={text}
        onChange={({ target }) => onType(target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
          event.preventDefault();
          send();
        }}
      />
      {isRunning ? (
        <Button key="stop" onClick={onStop}>
          <Icon name="stop" />
          {t.chat.stop}
        </Button>
      ) : (
        <Button key="send" type="submit" kind="primary">
          <Icon name="send" />
          {t.chat.send}
        </Button>
      )}
    </form>
  );
}
