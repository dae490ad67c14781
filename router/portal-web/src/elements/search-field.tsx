/** Words to search a list by; they reach the address once the typing pauses. */
import { useEffect, useState } from "react";
import type { ListState } from "./list-state.ts";

const pauseMs = 250;

export function SearchField({ label, state }: { readonly label: string; readonly state: ListState }) {
  const { search = "", set } = state;
  const [text, setText] = useState(search);
  useEffect(() => {
    if (text === search) return;
    const timer = setTimeout(() => set({ search: text || undefined }), pauseMs);
    return () => clearTimeout(timer);
  }, [text, search, set]);
  return (
    <input
      type="search"
      className="search"
      aria-label={label}
      placeholder={label}
      maxLength={200}
      value={text}
      onChange={({ target }) => setText(target.value)}
    />
  );
}
