import type { ReactNode } from 'react';
import { createPortal } from 'react-dom';

/** A slot in the bar above the page, which pages fill. The slot exists before the first page, so that the page is drawn once. */
const slot = document.createElement('div');
slot.className = 'bar-slot';

export const BarSlot = (): ReactNode => <div ref={(place) => place?.append(slot)} />;

export const InBar = ({ children }: { children: ReactNode }): ReactNode => createPortal(children, slot);
