import { lazy, Suspense, useState, useSyncExternalStore } from 'react';
import type { ReactNode } from 'react';
import { ApiFailure } from './call.ts';

/**
 * Some changes need a sign-in within the last 15 minutes (`reauth_required`). The call that was refused waits here until the
 * password or a passkey was given, and then runs again; closing the dialog gives up.
 */

interface Asking {
  done: (signedIn: boolean) => void;
}

let asking: Asking | null = null;
const listeners = new Set<() => void>();
function set(next: Asking | null): void {
  asking = next;
  for (const listener of listeners) listener();
}

export async function withFreshSignIn<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.code !== 'reauth_required') throw error;
    const signedIn = await new Promise<boolean>((done) => {
      asking?.done(false);
      set({ done });
    });
    if (!signedIn) throw error;
    return await run();
  }
}

const Dialog = lazy(() => import('./reauth-dialog.tsx'));

export function Reauth(): ReactNode {
  const current = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => asking,
  );
  // Most visits never need it.
  const [needed, setNeeded] = useState(false);
  if (current && !needed) setNeeded(true);
  const end = (signedIn: boolean): void => {
    set(null);
    current?.done(signedIn);
  };
  return needed ? (
    <Suspense fallback={null}>
      <Dialog asking={current !== null} end={end} />
    </Suspense>
  ) : null;
}
