import type { LucideIcon } from 'lucide-react/types';
import type { ReactNode } from 'react';

/** An icon beside a word: one stroke at every size, and nothing to a screen reader. */
export const Icon = ({ of: Shape, size = 16 }: { of: LucideIcon; size?: number }): ReactNode => (
  <Shape size={size} strokeWidth={1.75} aria-hidden focusable={false} />
);
