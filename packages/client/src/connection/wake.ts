/**
 * Calls `wake` when the network or the foreground is back; returns the function that stops it. React Native passes
 * its own.
 */
export type WakeSource = (wake: () => void) => () => void;

/** sdk#backoff: network-online and app foreground. In Node there is nothing to listen to. */
export const browserWake: WakeSource = (wake) => {
  if (typeof window === 'undefined' || typeof window.addEventListener !== 'function') return () => {};
  const visible = () => {
    if (document.visibilityState === 'visible') wake();
  };
  const hasDocument = typeof document !== 'undefined';
  window.addEventListener('online', wake);
  if (hasDocument) document.addEventListener('visibilitychange', visible);
  return () => {
    window.removeEventListener('online', wake);
    if (hasDocument) document.removeEventListener('visibilitychange', visible);
  };
};
