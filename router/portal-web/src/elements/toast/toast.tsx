/** Short confirmations, which disappear after a while. */
import { createContext, lazy, Suspense, use, useCallback, useEffect, useState, type ReactNode } from "react";

export interface Said {
  readonly text: string;
}

/** Offline, confirmations are not shown. */
const Toasts = lazy(() => import("./toasts.tsx").catch(() => ({ default: () => null })));
const SayContext = createContext<(text: string) => void>(() => {});

/** Confirmations follow what a person does, so their code is fetched at the first key or click, not with the page. */
export function ToastProvider({ children }: { readonly children: ReactNode }) {
  const [isUsed, setIsUsed] = useState(false);
  const [said, setSaid] = useState<Said>();
  const say = useCallback((text: string) => setSaid({ text }), []);
  useEffect(() => {
    const used = () => setIsUsed(true);
    const options = { once: true, capture: true };
    for (const event of ["pointerdown", "keydown"]) addEventListener(event, used, options);
    return () => ["pointerdown", "keydown"].forEach((event) => removeEventListener(event, used, options));
  }, []);
  return (
    <SayContext value={say}>
      {children}
      {(isUsed || said) && (
        <Suspense fallback={null}>
          <Toasts said={said} />
        </Suspense>
      )}
    </SayContext>
  );
}

/** Returns a function that shows a sentence. */
export function useToast(): (text: string) => void {
  return use(SayContext);
}
