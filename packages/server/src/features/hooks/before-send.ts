import { BeforeSendAnswer, limits } from '@parley/protocol';
import type { BeforeSend, BeforeSendAnswer as Answer } from '@parley/protocol';
import { unstorableText, validator } from '../../platform/validation.ts';
import { HookFailed } from './call.ts';

/** What the before-send hook is asked, and what it may answer (hooks#before-send). */

export const beforeSendType = 'message.before_send';

export type Rewrite = Omit<Extract<Answer, { action: 'rewrite' }>, 'action'>;
export type BeforeSendVerdict =
  { verdict: 'allow' } | { verdict: 'reject'; reason: string } | { verdict: 'rewrite'; rewrite: Rewrite };

export const badAnswer = (why: string): HookFailed => new HookFailed('answer', why, { status: 200 });

const schemas = new Map(
  BeforeSendAnswer.anyOf.map((schema) => [schema.properties.action.const as string, validator(schema)]),
);
const defaultReason = 'The message was refused.';

/** @param given what the hook answered; undefined if there was no content. */
export function readBeforeSend(given: unknown): BeforeSendVerdict {
  if (given === undefined) return { verdict: 'allow' };
  const action = (given as { action?: unknown } | null)?.action;
  const problem = schemas.get(typeof action === 'string' ? action : '');
  if (!problem) throw badAnswer('the answer has no action that is allow, reject or rewrite');
  const found = problem(given);
  if (found) throw badAnswer(`the answer is not valid: ${found.message}`);
  const unstorable = unstorableText(given);
  if (unstorable !== null) throw badAnswer(`the answer is not valid: ${unstorable} cannot be stored`);
  const answer = given as Answer;
  if (answer.action === 'allow') return { verdict: 'allow' };
  if (answer.action === 'reject') return { verdict: 'reject', reason: answer.reason ?? defaultReason };
  const { action: _, ...rewrite } = answer;
  if (Object.keys(rewrite).length === 0)
    throw badAnswer('the answer rewrites nothing: give text, mentions or metadata');
  return { verdict: 'rewrite', rewrite };
}

const sample: BeforeSend = {
  conversation: { id: 'conv_test', type: 'group', name: 'Test', metadata: {} },
  senderId: 'test',
  clientMsgId: 'test',
  edit: null,
  message: {
    text: `A test: nobody sent this. A message has up to ${limits.textCharacters} characters.`,
    replyTo: null,
    threadId: null,
    mentions: [],
    attachments: [],
    metadata: {},
  },
};
export const sampleBeforeSend = { type: beforeSendType, data: sample };
