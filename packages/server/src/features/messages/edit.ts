import { ApiError } from '@parley/protocol';
import type { Input, Message } from '@parley/protocol';
import { invalid } from '../../platform/api-errors.ts';
import { record } from '../../log/record.ts';
import { listReports } from '../../log/sql/consumers.ts';
import { changeMentions } from '../../log/unread/sql/mentions.ts';
import { emit } from '../../platform/jobs/sql/outbox.ts';
import type { Tx } from '../../platform/postgres/db.ts';
import { Change } from '../context.ts';
import type { Context } from '../context.ts';
import { requireWriting } from '../conversations/access.ts';
import { requirePosting } from '../conversations/rules.ts';
import type { SeenConversation } from '../conversations/sql.ts';
import { parseExtras, storeExtras } from '../extras.ts';
import { happened } from '../happenings.ts';
import type { Rewrite } from '../hooks/before-send.ts';
import type { LiveHook } from '../hooks/call.ts';
import * as reader from '../sql/message-reader.ts';
import type { MessageRow } from '../sql/message-reader.ts';
import type { Automaton } from '../words/automaton.ts';
import { badWords, listsFor, rejected, reportsOn } from '../words/check.ts';
import { concerns, conversationOf, decide, hookFor } from './before-send.ts';
import { allowAll, checkMentions, isForAll, mentionedUsers, storedMentions } from './mentions.ts';
import { findAnywhere, missing, readableMessage, withMessage } from './operations.ts';
import type { LockedMessage } from './operations.ts';
import * as sql from './sql.ts';

type EditInput = Input<'messages.update'>;

/** @param decided what the word lists say, if they and the hook have seen it. */
async function change(ctx: Context, input: EditInput, decided: Listed | null): Promise<Change<Message>> {
  const lists = decided ? null : await listsOf(ctx, input);
  return withMessage(ctx, input.messageId, async (tx, { access, row }) => {
    requireWriting(access);
    requirePosting(access.conv, access);
    requireEditable(ctx, row, input);
    const found = decided ?? listed(ctx, lists, input, access.conv);
    const text = (decided ? input.text : found.text) ?? row.text;
    const metadata = input.metadata === undefined ? row.metadata : JSON.stringify(input.metadata);
    requireContent(row, text, metadata);
    const mentions = await editedMentions(ctx, tx, { access, row }, text, input.mentions);
    await happened(ctx, tx, 'messageChanges', { env: ctx.env.no, row });
    const edited = await sql.editMessage(tx, ctx.env.no, row, {
      text,
      metadata,
      ...mentions,
      at: access.conv.lockedAt,
    });
    if (found.report && reportsOn(ctx.env)) {
      const { conv, seq, sender, id: messageId, version, extras, attachments } = edited;
      const data = { messageId, version, text: edited.text, extras, attachments };
      const row = { env: ctx.env.no, type: 'message.listed', conv, seq, message: seq, actor: sender, data };
      await emit(tx, listReports, row, true);
    }
    const message = reader.viewLive(edited);
    const [seq] = await record(ctx.services.log, tx, access.conv, [
      { type: 'message.updated', actor: access.actor, message },
    ]);
    // The message keeps its original seq.
    return new Change(200, message, seq!);
  });
}

/** Who the message mentions after the edit. Users who are newly named have it counted; nobody is pushed. */
async function editedMentions(
  ctx: Context,
  tx: Tx,
  { access, row }: LockedMessage,
  text: string | null,
  given: Input<'messages.update'>['mentions'],
): Promise<Pick<MessageRow, 'extras' | 'mentions'>> {
  const { mentions: before = [], ...rest } = parseExtras(row.extras);
  if (!given) {
    if (text === row.text || before.length === 0) return { extras: row.extras, mentions: row.mentions };
    // Nobody knows where in the new text the names stand.
    const extras = storeExtras({ ...rest, mentions: before.map(([who]) => [who]) });
    return {
      extras,
      mentions: row.mentions!.map(({ offset: _, length: __, ...mention }) => mention),
    };
  }
  checkMentions(ctx, text, given);
  if (given.some(isForAll) && !row.mentions?.some(isForAll)) allowAll(access.conv, access);
  const mentions = await storedMentions(tx, ctx.env.no, given);
  const [old, now] = [mentionedUsers(before), mentionedUsers(mentions)];
  await changeMentions(tx, ctx.env.no, row, {
    added: now.filter((user) => !old.includes(user)),
    removed: old.filter((user) => !now.includes(user)),
  });
  return { extras: storeExtras({ ...rest, mentions }), mentions: given.length > 0 ? given : null };
}

const listsOf = async (ctx: Context, input: EditInput): Promise<Automaton | null> =>
  input.text ? await listsFor(ctx) : null;

interface Listed {
  /** As the word lists leave it. */
  text: string | undefined;
  report: boolean;
}

function listed(
  ctx: Context,
  lists: Automaton | null,
  { text }: EditInput,
  { type }: { type: string },
): Listed {
  const found = lists?.find(text!, type === 'direct');
  if (found?.reject) throw rejected(ctx, badWords);
  return { text: found?.text ?? text, report: found?.report ?? false };
}

/** Throws unless the caller may edit the message as it is. */
function requireEditable({ caller }: Context, row: MessageRow, input: EditInput): void {
  if (caller.user && row.sender !== caller.user.no)
    throw new ApiError('forbidden', { message: 'Only the author may edit a message.' });
  if (row.deletedAt) throw missing();
  if (row.version !== input.expectedVersion)
    throw new ApiError('version_conflict', {
      message: `The message is at version ${row.version}: read it again.`,
    });
}

function requireContent(row: MessageRow, text: string | null, metadata: string | null): void {
  if (
    text === null &&
    row.attachments === null &&
    (metadata ?? '{}') === '{}' &&
    !parseExtras(row.extras).poll
  )
    throw invalid('metadata', 'A message needs text, an attachment, metadata or a poll.');
}

function requireChange(input: EditInput): void {
  if (input.text === undefined && input.metadata === undefined && input.mentions === undefined)
    throw invalid('text', 'Give text, metadata or mentions.');
}

export async function edit(ctx: Context, input: EditInput): Promise<Change<Message>> {
  requireChange(input);
  return change(ctx, input, null);
}

type Briefly = <T>(work: () => Promise<T>) => Promise<T>;

/**
 * hooks#before-send: asks the hook about an edit before the edit has its turn and its transaction. What the edit changes
 * is checked here and there: the message may change during the call, and then its version differs.
 * @returns null if no hook is asked, otherwise what runs instead of `edit`.
 */
export async function prepareEdit(
  ctx: Context,
  input: EditInput,
  briefly: Briefly,
): Promise<((inner: Context) => Promise<Change<Message>>) | null> {
  const hook = ctx.env.hooks === 0 ? null : await hookFor(ctx, true);
  if (!hook) return null;
  requireChange(input);
  const { row, conv } = await briefly(async () => {
    const found = await findAnywhere(ctx, input.messageId);
    return { row: found, conv: await readableMessage(ctx, found) };
  });
  if (!concerns(hook, conv)) return null;
  requireEditable(ctx, row, input);
  const found = listed(ctx, await listsOf(ctx, input), input, conv);
  const wanted: EditInput = { ...input, ...(found.text === undefined ? {} : { text: found.text }) };
  if (wanted.mentions) checkMentions(ctx, wanted.text ?? row.text, wanted.mentions);
  const decided = await ask(ctx, hook, { row, conv, wanted }, briefly);
  return (inner) => change(inner, decided, found);
}

async function ask(
  ctx: Context,
  hook: LiveHook,
  { row, conv, wanted }: { row: MessageRow; conv: SeenConversation; wanted: EditInput },
  briefly: Briefly,
): Promise<EditInput> {
  const { replyTo, attachments, metadata } = reader.viewLive(row);
  const data = {
    conversation: conversationOf(conv),
    senderId: row.senderId,
    clientMsgId: null,
    edit: { messageId: row.id, version: wanted.expectedVersion },
    message: {
      text: wanted.text ?? row.text,
      replyTo,
      threadId: null,
      mentions: wanted.mentions ?? row.mentions ?? [],
      attachments: attachments.map(({ id, name, size, mimeType }) => ({ id, name, size, mimeType })),
      metadata: wanted.metadata ?? metadata,
    },
  };
  const rewritten = await decide(ctx, hook, data, ({ text: given, ...rewrite }: Rewrite) =>
    briefly(async () => {
      if (given === null) throw invalid('text', 'text is required.');
      // Mentions that the author gave have ranges of the author's text.
      const kept =
        given !== undefined && wanted.mentions
          ? { mentions: wanted.mentions.map(({ offset: _, length: __, ...mention }) => mention) }
          : {};
      const made: EditInput = {
        ...wanted,
        ...(given === undefined ? {} : { text: given }),
        ...kept,
        ...rewrite,
      };
      const now = made.text ?? row.text;
      requireContent(row, now, made.metadata ? JSON.stringify(made.metadata) : row.metadata);
      if (rewrite.mentions) {
        checkMentions(ctx, now, rewrite.mentions);
        if (rewrite.mentions.some(isForAll) && !row.mentions?.some(isForAll))
          allowAll(conv, { role: conv.role, actor: ctx.caller.user });
        await storedMentions(ctx.db, ctx.env.no, rewrite.mentions);
      }
      return made;
    }),
  );
  return rewritten ?? wanted;
}
