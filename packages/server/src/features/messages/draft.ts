import { limits } from '@parley/protocol';
import type { Input } from '@parley/protocol';
import type { Context } from '../context.ts';
import type { Extras } from '../extras.ts';

export type SendInput = Input<'messages.send'>;

/** A message before it is appended. */
export interface Draft {
  readonly input: SendInput;
  /** null for a system message, and before the policy `sender`. */
  readonly sender: { no: number; id: string } | null;
  /** What is kept with the message beside its own columns. */
  readonly extras: Extras;
  /** A word list wants it reported. */
  readonly reported: boolean;
}

/** A server's send with an Idempotency-Key is also deduplicated inside the commit, so a crash cannot double it. */
export const repeatKey = (ctx: Context): string | null =>
  ctx.idempotencyKey === undefined ? null : `${repeatPrefix}${ctx.idempotencyKey}`;
/** Longer than any clientMsgId may be, so that no caller can send a clientMsgId that equals a server's key. */
const repeatPrefix = 'idempotency-key:'.padEnd(limits.clientMsgIdCharacters, ':');
