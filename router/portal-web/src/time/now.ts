/** The current time for texts such as "2 min ago", updated every half minute. */
import { useEffect, useState } from "react";

const stepMs = 30_000;

export function useNow(): number {
  const [nowMs, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), stepMs);
    return () => clearInterval(timer);
  }, []);
  return nowMs;
}
