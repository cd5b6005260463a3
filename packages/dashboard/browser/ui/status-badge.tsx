import type { ReactNode } from 'react';
import { Tag } from './tag.tsx';
import type { TagTone } from './tag.tsx';

const tones: Record<string, TagTone> = { enabled: 'ok', succeeded: 'ok', pending: 'neutral' };

export const StatusBadge = ({ status }: { status: string }): ReactNode => (
  <Tag tone={tones[status] ?? 'bad'}>{status}</Tag>
);
