import { useEffect, useRef } from 'react';

/** Where letters are typed, they are no keys. */
const typing =
  'input:not([type=checkbox]):not([type=radio]), textarea, select, [role=dialog], [contenteditable]';

/** Single letters, without Ctrl and the like. */
export function useKeys(on: boolean, keys: Record<string, (() => void) | undefined>): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  useEffect(() => {
    if (!on) return;
    const listen = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
      if ((event.target as Element | null)?.closest?.(typing) || document.querySelector('[role=dialog]'))
        return;
      const run = latest.current[event.key.toLowerCase()];
      if (!run) return;
      event.preventDefault();
      run();
    };
    document.addEventListener('keydown', listen);
    return () => document.removeEventListener('keydown', listen);
  }, [on]);
}
