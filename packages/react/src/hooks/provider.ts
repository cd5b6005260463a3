import { createElement, useEffect, useMemo, useState, useSyncExternalStore } from 'react';
import type { ReactNode } from 'react';
import type { Client } from '@parley/client';
import { english } from '../strings.ts';
import type { Slots } from '../slots.ts';
import type { Strings } from '../strings.ts';
import { Announcer } from './announcer.ts';
import { ParleyContext } from './context.ts';
import type { ParleyContextValue } from './context.ts';
import { SlotsContext } from './slots.ts';

export interface ParleyProviderProps {
  client: Client;
  /**
   * True: the provider connects while it is mounted and disconnects after that. Otherwise `client.connect()` and
   * `client.disconnect()` are yours.
   */
  connect?: boolean;
  /** Texts that differ from English. */
  strings?: Partial<Strings>;
  locale?: string;
  dir?: 'ltr' | 'rtl';
  /** `auto` follows the system. */
  theme?: 'light' | 'dark' | 'auto';
  density?: 'compact' | 'touch';
  /** Parts of your own in the place of the kit's. Keep the object the same between renders, or all of them render. */
  slots?: Slots;
  /** False: no shortcuts of single letters. */
  shortcuts?: boolean;
  /** The time of day in milliseconds, for "Today" and "Yesterday". */
  now?: () => number;
  children?: ReactNode;
}

const usual: Slots = {};

export function ParleyProvider(props: ParleyProviderProps): ReactNode {
  const {
    client,
    connect = false,
    strings,
    locale,
    dir,
    theme,
    density,
    slots = usual,
    shortcuts = true,
    now = Date.now,
  } = props;
  const [announcer] = useState(() => new Announcer());
  useEffect(() => {
    if (!connect) return;
    client.connect().catch(() => undefined); // `useConnection` has the reason.
    return () => client.disconnect();
  }, [client, connect]);
  const value = useMemo<ParleyContextValue>(
    () => ({
      client,
      strings: { ...english, ...strings },
      locale,
      dir,
      theme,
      density,
      shortcuts,
      now,
      announcer,
    }),
    [client, strings, locale, dir, theme, density, shortcuts, now, announcer],
  );
  return createElement(
    ParleyContext.Provider,
    { value },
    createElement(SlotsContext.Provider, { value: slots }, props.children),
    createElement(Region, { announcer }),
  );
}

const silent = (): string => '';

function Region({ announcer }: { announcer: Announcer }): ReactNode {
  const text = useSyncExternalStore(announcer.subscribe, announcer.get, silent);
  return createElement('div', { className: 'parley-announcer', role: 'status' }, text);
}
