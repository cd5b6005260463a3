import CheckIcon from 'lucide-react/icons/check';
import { useId, useRef, useState } from 'react';
import type { KeyboardEvent, ReactNode } from 'react';
import { Link } from 'wouter';
import { Icon } from './icon.tsx';

/** A menu below or above its button. The browser opens it on top, and closes it by Esc and by a click elsewhere. */
export function Menu(props: {
  /** Of the button; the menu has it with `-menu` behind. */
  className: string;
  button: ReactNode;
  children: ReactNode;
}): ReactNode {
  const id = useId();
  const menu = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState(false);
  const entries = (): HTMLElement[] => [...menu.current!.querySelectorAll<HTMLElement>('[role^="menuitem"]')];
  const press = (event: KeyboardEvent): void => {
    const all = entries();
    const at = all.indexOf(document.activeElement as HTMLElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (event.key === 'Tab') menu.current!.hidePopover();
    // It closes this menu alone, and the browser does that.
    if (event.key === 'Escape') event.stopPropagation();
    if (next === undefined) return;
    event.preventDefault();
    all.at(next % all.length)?.focus();
  };
  return (
    <>
      <button
        type="button"
        className={props.className}
        popoverTarget={id}
        aria-haspopup="menu"
        aria-expanded={open}
      >
        {props.button}
      </button>
      <div
        id={id}
        ref={menu}
        popover="auto"
        role="menu"
        className={`menu ${props.className}-menu`}
        onBeforeToggle={({ newState }) => newState === 'open' && setOpen(true)}
        // Once it is closed the button has the focus again, which entries that go would take with them.
        onToggle={({ newState }) => (newState === 'open' ? entries()[0]?.focus() : setOpen(false))}
        onKeyDown={press}
        onClick={({ target }) => {
          if ((target as Element).closest('[role^="menuitem"]')) menu.current!.hidePopover();
        }}
      >
        {open ? props.children : null}
      </div>
    </>
  );
}

/** A line of a menu that leads somewhere. */
export const MenuLink = (props: { href: string; chosen?: boolean; children: ReactNode }): ReactNode => (
  <Link role="menuitem" tabIndex={-1} href={props.href}>
    <span>{props.children}</span>
    {props.chosen ? <Icon of={CheckIcon} /> : null}
  </Link>
);

/** A line of a menu that does something; with `chosen` it is one of several of which one holds. */
export const MenuButton = (props: {
  onClick: () => void;
  chosen?: boolean;
  children: ReactNode;
}): ReactNode => (
  <button
    type="button"
    role={props.chosen === undefined ? 'menuitem' : 'menuitemradio'}
    aria-checked={props.chosen}
    tabIndex={-1}
    onClick={props.onClick}
  >
    <span>{props.children}</span>
    {props.chosen ? <Icon of={CheckIcon} /> : null}
  </button>
);
