import { useEffect, useRef } from 'react';
import type { ComponentPropsWithoutRef, KeyboardEvent, ReactNode } from 'react';
import type { MessageItem } from '@parley/client';
import { useStrings } from '../hooks/context.ts';
import { cx, moveFocus } from './tools.ts';

export interface MessageAction {
  /** Of the usual ones: `reply`, `edit`, `pin`, `report`, `delete`, in the sheet `copy`; after a question `delete`, `keep`. */
  id: string;
  label: string;
  icon: ReactNode;
  danger?: boolean;
  onPress: () => void;
}

/** Gets the usual buttons of a message, returns those to show. */
export type ChooseActions = (usual: readonly MessageAction[], item: MessageItem) => readonly MessageAction[];

export interface MessageActionsProps extends Omit<ComponentPropsWithoutRef<'div'>, 'children'> {
  item: MessageItem;
  /** At least one. */
  actions: readonly MessageAction[];
  /** What the actions answer, for instance whether to delete. */
  question?: string | undefined;
}

/** The buttons of a message, while it has the pointer or the focus. */
export function MessageActions({ item: _, actions, question, className, ...rest }: MessageActionsProps) {
  const strings = useStrings();
  const bar = useRef<HTMLDivElement>(null);
  const onKeyDown = (event: KeyboardEvent): void => {
    const row = bar.current?.closest<HTMLElement>('li');
    const buttons = [...(bar.current?.querySelectorAll<HTMLElement>('button') ?? [])];
    if (event.key === 'Escape' || (event.key === 'ArrowLeft' && document.activeElement === buttons[0]))
      row?.focus();
    else if (!moveFocus(event, buttons, true)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      ref={bar}
      role="toolbar"
      aria-label={strings.actions}
      onKeyDown={onKeyDown}
      {...rest}
      className={cx('parley-actions', className)}
    >
      {question ? <span>{question}</span> : null}
      {actions.map((one, i) => (
        <Action key={one.id} of={one} focused={question !== undefined && i === 0} />
      ))}
    </div>
  );
}

/** @param focused true if the keyboard opened the question: the focus then goes to its buttons. */
function Action({ of, focused }: { of: MessageAction; focused: boolean }) {
  const { label, icon, danger, onPress } = of;
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (focused) button.current?.focus();
  }, [focused]);
  return (
    <button
      ref={button}
      type="button"
      tabIndex={-1}
      title={label}
      aria-label={label}
      data-danger={danger || undefined}
      onClick={onPress}
    >
      {icon}
    </button>
  );
}
