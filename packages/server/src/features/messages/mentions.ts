import type { Mention, NewMention } from '@parley/protocol';
import { invalid } from '../../platform/api-errors.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Context } from '../context.ts';
import { requireAllowed } from '../conversations/rules.ts';
import type { LockedAccess } from '../conversations/access.ts';
import { requireFeature } from '../enabled.ts';
import type { StoredMention } from '../extras.ts';
import { userNumbers } from '../users/sql.ts';

/** What is checked of `mentions` before they are stored (mentions.md). */

/** Checks what can be checked without the store. @param text the text that the ranges are in. */
export function checkMentions(
  { env }: Pick<Context, 'env'>,
  text: string | null,
  mentions: readonly NewMention[],
): void {
  requireFeature(env, 'mentions');
  const users = new Set<string>();
  let all = 0;
  let end = 0;
  for (const [i, { type, userId, offset, length }] of mentions.entries()) {
    const at = `mentions[${i}]`;
    if (type !== 'user') {
      if (userId !== undefined) throw invalid(`${at}.userId`, `A mention of ${type} names no user.`);
      if (++all > 1) throw invalid(at, 'A message mentions everyone or here once.');
    } else if (userId === undefined) throw invalid(`${at}.userId`, 'userId is required.');
    else if (users.size === users.add(userId).size) throw invalid(at, 'A user is mentioned once.');
    if (offset === undefined && length === undefined) continue;
    if (offset === undefined || length === undefined)
      throw invalid(
        `${at}.${offset === undefined ? 'offset' : 'length'}`,
        'A range has both offset and length.',
      );
    if (offset < end) throw invalid(`${at}.offset`, 'Ranges ascend and do not overlap.');
    end = offset + length;
    if (text === null || end > text.length) throw invalid(at, 'The range is not inside the text.');
    if (splitsPair(text, offset) || splitsPair(text, end))
      throw invalid(at, 'The range begins or ends inside a surrogate pair.');
  }
}

/** Whether a cut at this place separates the two halves of a character. */
const splitsPair = (text: string, at: number): boolean =>
  at > 0 &&
  at < text.length &&
  (text.charCodeAt(at - 1) & 0xfc00) === 0xd800 &&
  (text.charCodeAt(at) & 0xfc00) === 0xdc00;

/** Everyone and here: in groups, by who keeps order in them, or by all members if the group says so. */
export function allowAll(
  conversation: { type: string; rules: string | null },
  by: Pick<LockedAccess, 'role' | 'actor'>,
): void {
  if (conversation.type === 'direct') throw invalid('mentions', 'Everyone and here are for groups.');
  requireAllowed(conversation, 'mentionEveryone', by, {
    param: 'mentions',
    message: 'Only the owner or a moderator may mention everyone or here.',
  });
}

export const isForAll = ({ type }: { type: Mention['type'] }): boolean => type !== 'user';

/** The form in which mentions are stored. A user who is not a member is kept, one that does not exist is refused. */
export async function storedMentions(
  db: Queryable,
  env: number,
  mentions: readonly NewMention[],
): Promise<StoredMention[]> {
  const ids = mentions.flatMap(({ userId }) => userId ?? []);
  // A message may name erased users as it did before.
  const numbers = ids.length === 0 ? new Map<string, number>() : await userNumbers(db, env, ids, true);
  return mentions.map(({ type, userId, offset, length }, i): StoredMention => {
    const who = type === 'user' ? numbers.get(userId!) : type;
    if (who === undefined) throw invalid(`mentions[${i}].userId`, 'There is no such user.');
    return offset === undefined ? [who] : [who, offset, length!];
  });
}

/** The users that rows are kept of: 0 stands for all together. */
export const mentionedUsers = (mentions: readonly StoredMention[] = []): number[] =>
  mentions.map(([who]) => (typeof who === 'number' ? who : 0));
