import type { Tx } from '../../platform/postgres/db.ts';
import type { Context } from '../context.ts';
import { nextPersonalRev } from './sql.ts';

/** What belongs to one user and to no conversation's stream; a feature adds its kind. */
type PersonalKind = 'level' | 'block' | 'restriction';

/**
 * Tells all of a user's sockets of a change of its personal state, after the commit. A device that is away learns
 * from `hello.personalRev` that something changed (events#personal).
 */
export async function personalChange(
  { env, services }: Pick<Context, 'env' | 'services'>,
  tx: Tx,
  user: number,
  kind: PersonalKind,
  d: Record<string, unknown>,
): Promise<void> {
  const rev = await nextPersonalRev(tx, env.no, user);
  tx.afterCommit(() => services.sockets.toUsers(env.no, [user], { t: 'personal', d: { rev, kind, d } }));
}
