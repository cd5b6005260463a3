import { useCallback, useEffect, useState } from 'react';
import type { CSSProperties } from 'react';
import type { Attachment as AttachmentData, Client } from '@parley/client';
import { useClient, useParley } from '../hooks/context.ts';
import { isPicture } from '../hooks/upload.ts';
import { Icon } from './icon.tsx';

interface Link {
  url: string;
  expiresAt: number;
}
const links = new WeakMap<Client, Map<string, Promise<Link>>>();
const maxLinks = 500;
/** A link is replaced before it expires: by so much. */
const earlyMs = 30_000;

function linkOf(client: Client, id: string, afresh: boolean): Promise<Link> {
  let all = links.get(client);
  if (!all) links.set(client, (all = new Map()));
  const held = all.get(id);
  if (held && !afresh) return held;
  const asked = client.uploads
    .attachmentUrl(id)
    .then(({ url, expiresAt }) => ({ url, expiresAt: Date.parse(expiresAt) }));
  all.set(id, asked);
  asked.catch(() => all.delete(id));
  if (all.size > maxLinks) all.delete(all.keys().next().value!);
  return asked;
}

/** An address of the file that is renewed for as long as somebody looks; null until it is there. */
function useLink(id: string): { url: string | null; gone: boolean; renew(): void } {
  const client = useClient();
  const [url, setUrl] = useState<string | null>(null);
  const [gone, setGone] = useState(false);
  const [round, setRound] = useState(0);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let over = false;
    const look = async (afresh: boolean): Promise<void> => {
      try {
        const link = await linkOf(client, id, afresh);
        if (over) return;
        const left = link.expiresAt - Date.now() - earlyMs;
        if (left <= 0 && !afresh) return await look(true);
        setUrl(link.url);
        timer = setTimeout(() => void look(true), Math.min(Math.max(left, earlyMs), 2 ** 31 - 1));
      } catch {
        if (!over) setGone(true);
      }
    };
    void look(round > 0);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [client, id, round]);
  // Once: a file that does not load with a new link is not there.
  const renew = useCallback(() => (round === 0 ? setRound(1) : setGone(true)), [round]);
  return { url, gone, renew };
}

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
  /** Opens a picture; without it the picture opens in another tab. */
  onOpen?: (attachment: AttachmentData, url: string) => void;
}

/** A picture that keeps its place while it loads, or a file to download. */
export function Attachment({ attachment, onOpen }: AttachmentProps) {
  return isPicture(attachment.mimeType) ? (
    <Picture attachment={attachment} {...(onOpen ? { onOpen } : {})} />
  ) : (
    <File attachment={attachment} />
  );
}

function Picture({ attachment, onOpen }: AttachmentProps) {
  const { strings } = useParley();
  const { url, gone, renew } = useLink(attachment.id);
  const { name, width = 280, height = 168 } = attachment;
  if (gone) return <File attachment={attachment} />;
  const shape = { '--parley-ratio': `${width} / ${height}`, '--parley-width': `${width}px` } as CSSProperties;
  const image = url && (
    <img src={url} alt={name} width={width} height={height} loading="lazy" onError={renew} />
  );
  if (onOpen && url)
    return (
      <button
        type="button"
        className="parley-image"
        style={shape}
        aria-label={strings.openPicture(name)}
        onClick={() => onOpen(attachment, url)}
      >
        {image}
      </button>
    );
  return (
    <a
      className="parley-image"
      style={shape}
      href={url ?? undefined}
      target="_blank"
      rel="noopener noreferrer"
      aria-label={strings.openPicture(name)}
    >
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
