import type { ReactNode } from 'react';

export type TagTone = 'ok' | 'bad' | 'warn' | 'neutral';

/** A label for a state. */
export const Tag = ({ tone = 'neutral', children }: { tone?: TagTone; children: ReactNode }): ReactNode => (
  <span className={`tag tag-${tone}`}>{children}</span>
);
