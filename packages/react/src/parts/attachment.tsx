import { createContext, useContext, useState } from 'react';
import type { CSSProperties } from 'react';
import type { Attachment as AttachmentData } from '@parley/client';
import { useParley } from '../hooks/context.ts';
import { linkOf, useLink } from '../hooks/link.ts';
import { isPicture } from '../hooks/upload.ts';
import { Icon } from './icon.tsx';
import { later } from './later.ts';
import type { PlayerProps } from './player.tsx';

const VoiceNote = later(
  () => import('./voice.tsx'),
  () => <div className="parley-voice" />,
);
const Player = later<PlayerProps>(
  () => import('./player.tsx'),
  ({ kind }) => <div className={`parley-${kind}`} />,
);

/** Opens a picture in the viewer of the list around it; null where there is none. */
export const ViewerContext = createContext<((attachment: AttachmentData) => void) | null>(null);

const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte'];
function sizeText(bytes: number, locale: string | undefined): string {
  const step = Math.min(3, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  const options = {
    style: 'unit',
    unit: units[step]!,
    unitDisplay: 'short',
    maximumFractionDigits: step > 1 ? 1 : 0,
  };
  return new Intl.NumberFormat(locale, options as Intl.NumberFormatOptions).format(bytes / 1000 ** step);
}

export interface AttachmentProps {
  attachment: AttachmentData;
  /** Opens a picture; without it the viewer of the list does, and outside of a list another tab. */
  onOpen?: ((attachment: AttachmentData, url: string) => void) | undefined;
}

/** A picture that keeps its place while it loads, a film, a sound or a voice note to play, or a file to download. */
export function Attachment({ attachment, onOpen }: AttachmentProps) {
  const { mimeType } = attachment;
  if (isPicture(mimeType)) return <Picture attachment={attachment} onOpen={onOpen} />;
  const [kind] = mimeType.split('/');
  if (kind === 'audio' && (attachment.waveform || attachment.durationMs))
    return <VoiceNote attachment={attachment} />;
  if (kind === 'video' || kind === 'audio')
    return (
      <Player attachment={attachment} kind={kind}>
        <File attachment={attachment} />
      </Player>
    );
  return <File attachment={attachment} />;
}

function Picture({ attachment, onOpen }: AttachmentProps) {
  const { strings } = useParley();
  const { url, gone, renew } = useLink(attachment.id);
  const view = useContext(ViewerContext);
  const { name, width = 280, height = 168 } = attachment;
  if (gone) return <File attachment={attachment} />;
  const open = onOpen && url !== null ? () => onOpen(attachment, url) : view && (() => view(attachment));
  const attributes = {
    className: 'parley-image',
    style: { '--parley-ratio': `${width} / ${height}`, '--parley-width': `${width}px` } as CSSProperties,
    'aria-label': strings.openPicture(name),
  };
  const image = url && (
    <img src={url} alt={name} width={width} height={height} loading="lazy" onError={renew} />
  );
  return open ? (
    <button type="button" {...attributes} onClick={open}>
      {image}
    </button>
  ) : (
    <a {...attributes} href={url ?? undefined} target="_blank" rel="noopener noreferrer">
      {image}
    </a>
  );
}

function File({ attachment }: { attachment: AttachmentData }) {
  const { strings, locale, client } = useParley();
  const [gone, setGone] = useState(false);
  const { name, size } = attachment;
  // A link is asked for when it is needed: most files are never opened.
  const open = async (): Promise<void> => {
    try {
      const { url } = await linkOf(client, attachment.id, true);
      const link = document.createElement('a');
      Object.assign(link, { href: url, download: name, rel: 'noopener noreferrer', target: '_blank' });
      link.click();
    } catch {
      setGone(true);
    }
  };
  const kind = /\.(\w{1,4})$/.exec(name)?.[1] ?? '…';
  return (
    <button type="button" className="parley-file" onClick={() => void open()}>
      <span className="parley-hidden">{strings.download}</span>
      <span className="parley-file-kind" aria-hidden="true">
        {kind.toUpperCase()}
      </span>
      <span className="parley-file-text">
        <bdi>{name}</bdi>
        <small>{gone ? strings.fileGone : <bdi dir="ltr">{sizeText(size, locale)}</bdi>}</small>
      </span>
      <Icon name="download" size={17} />
    </button>
  );
}
