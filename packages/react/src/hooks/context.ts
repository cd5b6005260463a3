import { createContext, useContext } from 'react';
import type { Client } from '@parley/client';
import type { Strings } from '../strings.ts';
import type { Announcer } from './announcer.ts';

export interface ParleyContextValue {
  client: Client;
  strings: Strings;
  locale: string | undefined;
  dir: 'ltr' | 'rtl' | undefined;
  theme: 'light' | 'dark' | 'auto' | undefined;
  density: 'compact' | 'touch' | undefined;
  shortcuts: boolean;
  now: () => number;
  announcer: Announcer;
}

export const ParleyContext = createContext<ParleyContextValue | null>(null);

export function useParley(): ParleyContextValue {
  const value = useContext(ParleyContext);
  if (!value)
    throw new Error('Put <ParleyProvider client={client}> around the components and hooks of Parley.');
  return value;
}

/** The client that the provider was given. */
export const useClient = (): Client => useParley().client;
export const useStrings = (): Strings => useParley().strings;
