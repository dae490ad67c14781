/** Icons in the colour of their text. Their meaning is always in the text, too. */
const paths = {
  overview: "M3 12l9-8 9 8M5 10v10h14V10M10 20v-6h4v6",
  start: "M5 4l14 8-14 8z",
  keys: "M14 10a4 4 0 1 0-3.2 3.9L13 16h2v2h2v2h3v-3l-6.1-6.1A4 4 0 0 0 14 10zM9.5 9.5h.01",
  usage: "M4 20V10M10 20V4M16 20v-8M21 20H3",
  requests: "M4 6h16M4 12h11M4 18h16M18.5 12h1.5",
  package: "M4 8l8-4 8 4v8l-8 4-8-4zM4 8l8 4 8-4M12 12v8",
  settings: "M4 7h10M18 7h2M4 17h2M10 17h10M16 5v4M8 15v4",
  invoices: "M6 3h12v18l-3-2-3 2-3-2-3 2zM9 8h6M9 12h6",
  users:
    "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20c0-3.3 2.7-6 6-6s6 2.7 6 6M16 4.5a3.5 3.5 0 0 1 0 6M18 14.5c1.8.9 3 2.9 3 5.5",
  models: "M4 7h16M4 12h16M4 17h16M8 5v4M15 10v4M10 15v4",
  chat: "M4 5h16v11H9l-5 4z",
  account: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 20c0-4 3.6-6 8-6s8 2 8 6",
  nodes: "M4 4h16v6H4zM4 14h16v6H4zM8 7h.01M8 17h.01",
  pipeline: "M4 7h9l3 5-3 5H4M16 12h5M4 12h6",
  audit: "M6 3h9l4 4v14H6zM15 3v4h4M9 12h7M9 16h7",
  notices: "M6 16V10a6 6 0 1 1 12 0v6l2 2H4zM10 21h4",
  help: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM9.5 9.5a2.5 2.5 0 1 1 3.6 2.2c-.7.4-1.1.9-1.1 1.8M12 16.8h.01",
  changes: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5l3.5 2",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6L6 18",
  down: "M6 9l6 6 6-6",
  more: "M6 12h.01M12 12h.01M18 12h.01",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "M5 13l4 4L19 7",
  plus: "M12 5v14M5 12h14",
  download: "M12 4v11M7 11l5 5 5-5M4 20h16",
  image: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.5 9h.01",
  stop: "M7 7h10v10H7z",
  send: "M4 12l16-8-6 16-3-6z",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg className={`icon icon-${name}`} viewBox="0 0 24 24" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}

/** The logo: two tracks that diverge. */
export function Mark() {
  return (
    <svg className="mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" />
      <path d="M6 23.5h20M6 23.5h5c6 0 6-14 12-14h3" />
    </svg>
  );
}
