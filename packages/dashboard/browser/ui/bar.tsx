import { createContext, useContext } from 'react';
import type { ReactNode } from 'react';
import { createPortal } from 'react-dom';

/** A place in the bar above the page, for what a page puts there. */
const Slot = createContext<HTMLElement | null>(null);

export const BarSlot = Slot.Provider;

export function InBar({ children }: { children: ReactNode }): ReactNode {
  const slot = useContext(Slot);
  return slot ? createPortal(children, slot) : null;
}
