import { useEffect, useRef, useState } from 'react';
import type { KeyboardEvent } from 'react';
import type { Attachment } from '@parley/client';
import { useParley } from '../hooks/context.ts';
import { useLink } from '../hooks/link.ts';
import { Icon, Path } from './icon.tsx';

interface ViewerProps {
  pictures: readonly Attachment[];
  /** The id of the picture that is shown first. */
  first: string;
  onClose: () => void;
}

const forward = 'm9 18 6-6-6-6';

/** One picture large, and the others of the conversation by the arrows. The browser keeps the focus inside of it. */
export default function Viewer({ pictures, first, onClose }: ViewerProps) {
  const { strings } = useParley();
  const dialog = useRef<HTMLDialogElement>(null);
  const [at, setAt] = useState(() =>
    Math.max(
      0,
      pictures.findIndex(({ id }) => id === first),
    ),
  );
  useEffect(() => {
    const opener = document.activeElement as HTMLElement | null;
    const element = dialog.current!;
    element.showModal();
    return () => {
      element.close();
      opener?.focus();
    };
  }, []);
  const shown = pictures[at]!;
  const go = (step: number): void => setAt(Math.min(pictures.length - 1, Math.max(0, at + step)));
  const onKeyDown = (event: KeyboardEvent): void => {
    const forward = getComputedStyle(event.currentTarget).direction === 'rtl' ? 'ArrowLeft' : 'ArrowRight';
    if (event.key === 'Escape') onClose();
    else if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') go(event.key === forward ? 1 : -1);
    else if (event.key === 'Home') setAt(0);
    else if (event.key === 'End') setAt(pictures.length - 1);
    // The rest belongs to the dialog too: the list behind it must not move.
    else return event.stopPropagation();
    event.preventDefault();
    event.stopPropagation();
  };
  const turn = (step: number, label: string) => (
    <button
      type="button"
      className="parley-viewer-turn"
      data-step={step}
      aria-label={label}
      disabled={pictures[at + step] === undefined}
      onClick={() => go(step)}
    >
      {step < 0 ? <Icon name="back" size={22} /> : <Path d={forward} size={22} turn />}
    </button>
  );
  return (
    <dialog
      ref={dialog}
      className="parley-viewer"
      aria-label={shown.name}
      onKeyDown={onKeyDown}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === event.currentTarget) onClose();
      }}
    >
      <header>
        <bdi>{shown.name}</bdi>
        {pictures.length > 1 ? (
          <span aria-live="polite">
            <bdi>{strings.pictureOf(at + 1, pictures.length)}</bdi>
          </span>
        ) : null}
        <button type="button" className="parley-button" aria-label={strings.close} onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <Large key={shown.id} picture={shown} onClose={onClose} />
      {pictures.length > 1 ? (
        <>
          {turn(-1, strings.previousPicture)}
          {turn(1, strings.nextPicture)}
        </>
      ) : null}
    </dialog>
  );
}

function Large({ picture, onClose }: { picture: Attachment; onClose: () => void }) {
  const { strings } = useParley();
  const { url, gone, renew } = useLink(picture.id);
  const { name, width, height } = picture;
  const size = width && height ? { width, height } : {};
  return (
    <div
      className="parley-viewer-picture"
      onClick={(event) => {
        if (event.target === event.currentTarget) onClose();
      }}
    >
      {gone ? (
        <p role="alert">{strings.fileGone}</p>
      ) : url === null ? null : (
        <img src={url} alt={name} {...size} onError={renew} />
      )}
    </div>
  );
}
