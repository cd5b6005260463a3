import type { ReactNode } from 'react';
import { createPortal } from 'react-dom';

/** A place in the bar above the page, for what a page puts there. It is there before the first page, which so is drawn once. */
const slot = document.createElement('div');
slot.className = 'bar-slot';

export const BarSlot = (): ReactNode => <div ref={(place) => place?.append(slot)} />;

export const InBar = ({ children }: { children: ReactNode }): ReactNode => createPortal(children, slot);
