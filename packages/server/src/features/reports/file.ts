import { ApiError } from '@parley/protocol';
import type { ReportEntry } from '@parley/protocol';
import { tell } from '../../log/record.ts';
import type { Tx } from '../../platform/postgres/db.ts';
import type { Services } from '../context.ts';
import { sealSnapshot } from './snapshot.ts';
import type { Said } from './snapshot.ts';
import * as sql from './sql.ts';
import type { Target } from './sql.ts';

/** How a report is made, by whomever (reports.md). */

export interface Filing {
  target: Target;
  /** Of a message, and of one alone. */
  said: Said | null;
  conversationId: string | null;
  reporter: number;
  reason: ReportEntry['reason'];
  note: string | null;
}

type Needed = { services: Pick<Services, 'ids' | 'vault' | 'log' | 'analytics'> };

const gone = (kind: Target['kind']): ApiError =>
  new ApiError('not_found', { message: kind === 'message' ? 'Message not found.' : 'User not found.' });

/** Returns the report, and whether it is new; null if a word list reported this before. */
export async function file(
  { services }: Needed,
  tx: Tx,
  env: number,
  filing: Filing,
): Promise<{ id: string; made: boolean } | null> {
  const { target, said, reporter, reason, note } = filing;
  await sql.lockTarget(tx, env, target);
  // Whoever is erased, or deletes for good, waits for this transaction and then finds the report; or came before it.
  const people = [reporter, target.user ?? 0].filter((no) => no > 0);
  const there = await sql.holdUsers(tx, env, people);
  if (reporter > 0 && !there.has(reporter)) throw gone('user');
  if (target.kind === 'user' && !there.has(target.target)) throw gone('user');
  // Nothing is kept of what an erased user said; a message of a list waits a moment for its report.
  if (reporter === sql.reporters.list && target.user !== null && !there.has(target.user)) throw gone('user');
  if (target.kind === 'message' && !(await sql.holdMessage(tx, env, target))) throw gone('message');
  if (reporter === sql.reporters.list) {
    if (await sql.listReported(tx, env, target, said!.version)) return null;
  } else {
    const before = await sql.ownReport(tx, env, target, reporter);
    if (before !== undefined) return { id: before, made: false };
  }
  const id = services.ids.make('report');
  await sql.insertReport(tx, env, {
    id,
    target,
    reporter,
    reason,
    note,
    version: said?.version ?? 0,
    snapshot: said && sealSnapshot(services.vault, env, id, said),
  });
  await tell(services.log, tx, env, 'report.created', {
    users: [...(target.user === null ? [] : [target.user]), ...(reporter > 0 ? [reporter] : [])],
    data: {
      reportId: id,
      ...targetData(target, filing.conversationId),
      reason,
      byUser: reporter > 0,
      aboutUser: target.user !== null,
    },
  });
  tx.afterCommit(() => services.analytics.tally.add(env, 'reports'));
  return { id, made: true };
}

/** What of a target stands in the data of a webhook; its user is referred to by number. */
export const targetData = (
  { kind, messageId, seq }: Pick<Target, 'kind' | 'messageId' | 'seq'>,
  conversationId: string | null,
) => ({ kind, messageId, seq: kind === 'message' ? seq : null, conversationId });
