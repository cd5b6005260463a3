import type { ReportAction, ReportCase } from '@parley/protocol';
import type { TagTone } from '../ui/tag.tsx';

/** How reports are named on the page. */

export const reasonWords: Record<ReportCase['reasons'][number]['reason'], string> = {
  spam: 'spam',
  abuse: 'abuse',
  violence: 'violence',
  sexual: 'sexual',
  self_harm: 'self-harm',
  illegal: 'illegal',
  other: 'other',
  list: 'word list',
};

export const actionWords: Record<ReportAction, string> = {
  delete_message: 'message deleted',
  silence: 'silenced',
  ban: 'banned from the group',
  deactivate: 'deactivated',
};

export const statusTones: Record<ReportCase['status'], TagTone> = {
  open: 'warn',
  resolved: 'ok',
  dismissed: 'neutral',
};

export const countOf = (reports: number): string =>
  reports === 1 ? '1 report' : `${reports >= 1_000 ? '1,000+' : reports} reports`;

/** One line about the reported content. */
export function saidIn({ target, snapshot, latest }: ReportCase): string {
  if (target.kind !== 'message')
    return (
      latest.find(({ note }) => note !== null)?.note ?? (target.kind === 'user' ? 'the user' : 'as a whole')
    );
  if (!snapshot) return 'a message that no longer exists';
  return snapshot.text ?? snapshot.poll?.question ?? (snapshot.files.join(', ') || 'a message without text');
}
