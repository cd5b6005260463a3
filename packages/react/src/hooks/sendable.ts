import { useEffect, useMemo, useReducer } from 'react';
import { useConversation } from './open.ts';
import { useStore } from './store.ts';

export interface SendableView {
  /** False while slow mode or a silence makes the user wait. */
  can: boolean;
  /** Until when, in milliseconds since 1970; Infinity: without an end; null: it need not wait. */
  at: number | null;
}

const always = { get: () => null, subscribe: () => () => undefined };
/** Longer times overflow a timer of the browser. */
const longest = 2_000_000_000;

/** Whether the user may send now; renders again when the time has come. */
export function useSendable(id: string | null | undefined): SendableView {
  const conversation = useConversation(id);
  const at = useStore<number | null>(conversation?.sendableAt ?? always, null);
  const [, render] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    if (at === null || at === Infinity) return undefined;
    const timer = setTimeout(render, Math.min(Math.max(at - Date.now(), 0) + 1, longest));
    return () => clearTimeout(timer);
  }, [at]);
  return useMemo(() => ({ can: at === null, at }), [at]);
}
