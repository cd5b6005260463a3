import type { ReactNode } from 'react';
import type { Attachment as AttachmentData } from '@parley/client';
import { useLink } from '../hooks/link.ts';

export interface PlayerProps {
  attachment: AttachmentData;
  kind: 'video' | 'audio';
  /** What stands there when the file is gone. */
  children: ReactNode;
}

/** A film or a sound, with the browser's controls. */
export default function Player({ attachment, kind: Kind, children }: PlayerProps) {
  const { url, gone, renew } = useLink(attachment.id, true);
  if (gone) return children;
  return (
    <Kind
      className={`parley-${Kind}`}
      controls
      preload="metadata"
      playsInline={Kind === 'video' || undefined}
      src={url ?? undefined}
      aria-label={attachment.name}
      onError={renew}
    />
  );
}
