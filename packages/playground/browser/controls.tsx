import { useEffect, useRef } from 'react';
import type { ReactNode } from 'react';
import { Icon } from './icons.tsx';
import type { IconName } from './icons.tsx';

/** Buttons and dialogs of the demo itself. */

interface IconButtonProps {
  icon: IconName;
  label: string;
  pressed?: boolean;
  onPress: () => void;
}
export const IconButton = ({ icon, label, pressed, onPress }: IconButtonProps) => (
  <button
    type="button"
    className="parley-button demo-icon"
    aria-label={label}
    title={label}
    aria-pressed={pressed}
    onClick={onPress}
  >
    <Icon name={icon} size={18} />
  </button>
);

interface SheetProps {
  title: string;
  onClose: () => void;
  children: ReactNode;
}
/** A dialog over the page. The browser keeps the focus in it, and Escape closes it. */
export function Sheet({ title, onClose, children }: SheetProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current!;
    element.showModal();
    return () => element.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      className="demo-sheet"
      aria-label={title}
      // Keys belong to the dialog, and not to the thread around it.
      onKeyDown={(event) => event.stopPropagation()}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <div>
        <header>
          <h2>{title}</h2>
          <IconButton icon="close" label="Close" onPress={onClose} />
        </header>
        {children}
      </div>
    </dialog>
  );
}

interface SearchProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
}
export const Search = ({ label, value, onChange }: SearchProps) => (
  <label className="demo-search">
    <Icon name="search" size={15} />
    <input
      type="search"
      value={value}
      placeholder={label}
      aria-label={label}
      autoComplete="off"
      onChange={(event) => onChange(event.target.value)}
    />
  </label>
);
