import { createContext, useContext } from 'react';
import type { ComponentType } from 'react';
import { shallowEqual, useStable } from './store.ts';

/** Parts that every compound takes from the provider; `Slots` also has those of a thread. */
type PartName = 'Avatar' | 'ConversationItem' | 'EmojiPicker' | 'Receipt' | 'UnreadBadge';

/** Untyped here, because each part knows its own props and this module none of the parts: `Slots` is what the provider accepts. */
export const SlotsContext = createContext<object>({});

export const useSlots = <S extends object>(): S => useContext(SlotsContext) as S;

/** These slots over those from above: the same object until a part changes, because whatever shows one renders with it. */
export function useSlotsWith<S extends object>(own: S | undefined): S {
  return useStable<S>(shallowEqual)({ ...useSlots<S>(), ...own });
}

/** The part that the provider was given, or else the usual one; null leaves it out. */
export function useSlot<P>(name: PartName, usual: ComponentType<P>): ComponentType<P> | null {
  const given = useSlots<Partial<Record<PartName, ComponentType<P> | null>>>()[name];
  return given === undefined ? usual : given;
}
