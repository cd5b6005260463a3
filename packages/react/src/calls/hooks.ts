import {
  createContext,
  createElement,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useState,
  useSyncExternalStore,
} from 'react';
import type { ReactNode } from 'react';
import type { ParleyError } from '@parley/client';
import type { Call, CallHandle, Calls, CallSnapshot, MediaDevice } from '@parley/client/calls';
import { nothing } from '../hooks/store.ts';
import { englishCalls } from './strings.ts';
import type { CallStrings } from './strings.ts';

interface CallsContextValue {
  calls: Calls;
  strings: CallStrings;
}
const CallsContext = createContext<CallsContextValue | null>(null);

export interface CallsProviderProps {
  /** Of `createCalls(client)`; it stays yours to `close`. */
  calls: Calls;
  strings?: Partial<CallStrings>;
  children?: ReactNode;
}

/** Goes inside of `ParleyProvider`. */
export function CallsProvider({ calls, strings, children }: CallsProviderProps): ReactNode {
  const value = useMemo(() => ({ calls, strings: { ...englishCalls, ...strings } }), [calls, strings]);
  return createElement(CallsContext.Provider, { value }, children);
}

function useCallsContext(): CallsContextValue {
  const value = useContext(CallsContext);
  if (!value) throw new Error('Put <CallsProvider calls={createCalls(client)}> around the parts of calls.');
  return value;
}
/** The calls that the provider was given: `start`, `join`, `rejoin`. */
export const useCalls = (): Calls => useCallsContext().calls;
export const useCallStrings = (): CallStrings => useCallsContext().strings;

const none = (): null => null;

/** The first call for which `wanted` is true. A call reports its own state, the list only which calls begin and end. */
function useFirst(wanted: (call: CallHandle) => boolean): CallHandle | null {
  const calls = useCalls();
  const subscribe = useCallback(
    (changed: () => void) => {
      let offs: (() => void)[] = [];
      const follow = (): void => {
        for (const off of offs) off();
        offs = calls.get().map((call) => call.subscribe(changed));
      };
      const off = calls.subscribe(() => {
        follow();
        changed();
      });
      follow();
      return () => {
        off();
        for (const one of offs) one();
      };
    },
    [calls],
  );
  return useSyncExternalStore(subscribe, () => calls.get().find(wanted) ?? null, none);
}

const rings = (call: CallHandle): boolean => call.state === 'incoming';
const goesOn = (call: CallHandle): boolean => call.state !== 'incoming' && call.state !== 'ended';

/** The call that rings on this device. */
export const useIncomingCall = (): CallHandle | null => useFirst(rings);

/** The call that goes on in a conversation, whether this device has a part in it or not. */
export function useLiveCall(conversationId: string | null | undefined): Call | null {
  const { live } = useCalls();
  const get = (): Call | null => live.get().find((call) => call.conversationId === conversationId) ?? null;
  return useSyncExternalStore(live.subscribe, get, none);
}

/** The call with this id, if it rings here or this device is in it. */
export const useKnownCall = (id: string | undefined): CallHandle | null =>
  useFirst((call) => call.id === id && call.state !== 'ended');

/** What to say of something that failed; `device` names what could not be had. */
export function problemOf(e: unknown, strings: CallStrings, device?: string): string {
  const { code, message } = e as ParleyError;
  if (device !== undefined && code === 'media_permission_denied') return strings.denied(device);
  if (device !== undefined && (code === 'media_device_not_found' || code === 'media_device_busy'))
    return strings.missing(device);
  return message;
}

export interface CallView extends CallSnapshot {
  handle: CallHandle;
}

/** The call that this device is in, or the given one: its state, and the handle that acts on it. */
export function useCall(of?: CallHandle | null): CallView | null {
  const current = useFirst(goesOn);
  const handle = of === undefined ? current : of;
  const snapshot = useSyncExternalStore(handle?.subscribe ?? nothing, () => handle?.get() ?? null, none);
  return useMemo(() => (handle && snapshot ? { ...snapshot, handle } : null), [handle, snapshot]);
}

export interface DevicesView {
  mics: readonly MediaDevice[];
  cameras: readonly MediaDevice[];
  speakers: readonly MediaDevice[];
  /** Lists them again: their names are known once the user has allowed one of the kind. */
  refresh(): void;
}

/** Microphones, cameras and speakers, kept up to date while one is plugged in or out. */
export function useDevices(): DevicesView {
  const { devices } = useCalls();
  const [all, setAll] = useState<readonly MediaDevice[]>([]);
  const refresh = useCallback(
    () => void devices.list().then(setAll, () => undefined), // A browser without devices has an empty list.
    [devices],
  );
  useEffect(() => {
    refresh();
    return devices.watch(refresh);
  }, [devices, refresh]);
  return useMemo(() => {
    const of = (kind: MediaDevice['kind']) => all.filter((device) => device.kind === kind);
    return { mics: of('mic'), cameras: of('camera'), speakers: of('speaker'), refresh };
  }, [all, refresh]);
}
