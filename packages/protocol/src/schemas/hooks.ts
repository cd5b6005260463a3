import { Type } from '../type.ts';
import type { Static } from 'typebox';
import { limits } from '../limits.ts';
import { closed, Metadata, nullable, open, optional, Text, Timestamp } from './common.ts';
import { Mention, NewMentions } from './mentions.ts';

/** Synchronous hooks (hooks.md): the service asks a server of the customer, and waits for its answer. */

const oneOf = <const V extends readonly string[]>(values: V, description: string) =>
  Type.Unsafe<V[number]>({ type: 'string', enum: [...values], description });

/** The kinds that work. */
export const hookKinds = ['before-send'] as const;
export type HookKind = (typeof hookKinds)[number];
export const HookKindParam = oneOf(hookKinds, 'What the hook is asked about; `before-send`: messages');

const url = Type.String({
  minLength: 1,
  maxLength: limits.webhookUrlCharacters,
  description: 'https, a public address, no credentials in it',
});
const forHowLong = 'How long a message waits for the answer, with everything: a free place, DNS, connecting';
const onFailure = oneOf(
  ['allow', 'reject'],
  'What becomes of a message without an answer: stored unchanged, or `503 hook_unavailable`',
);
const edits = (more: object) =>
  Type.Boolean({ description: 'Edits of messages are asked about too', ...more });
const servers = (more: object) =>
  Type.Boolean({ description: 'What servers send is asked about too', ...more });
const types = nullable(oneOf(['direct', 'group'], 'Only conversations of this type; null: all'));

export const hookFields = {
  url,
  timeoutMs: optional(
    Type.Integer({
      minimum: limits.hookTimeoutMsMin,
      maximum: limits.hookTimeoutMsMax,
      default: limits.hookTimeoutMs,
      description: forHowLong,
    }),
  ),
  onFailure: optional(Type.Unsafe<Static<typeof onFailure>>({ ...onFailure, default: 'allow' })),
  edits: optional(edits({ default: true })),
  servers: optional(servers({ default: false })),
  types: optional(types),
};

const hook = {
  kind: oneOf(hookKinds, 'What the hook is asked about'),
  url: Type.String(),
  timeoutMs: Type.Integer({ description: forHowLong }),
  onFailure,
  edits: edits({}),
  servers: servers({}),
  types,
  createdAt: Timestamp,
  updatedAt: Timestamp,
  failingSince: nullable(
    Type.String({ format: 'date-time', description: 'Since when it does not work; null: it does' }),
  ),
};
const secret = Type.String({ pattern: '^whsec_', description: 'Shown this once' });

export const Hook = open(hook, 'Hook');
export type Hook = Static<typeof Hook>;
export const SetHook = open({ ...hook, secret: optional(secret) }, 'SetHook');
export type SetHook = Static<typeof SetHook>;
export const HookWithSecret = open({ ...hook, secret }, 'HookWithSecret');
export type HookWithSecret = Static<typeof HookWithSecret>;

const verdicts = ['allow', 'reject', 'rewrite'] as const;
export type HookVerdict = (typeof verdicts)[number];
const durationMs = Type.Integer({ minimum: 0 });

export const HookTest = open(
  {
    verdict: nullable(oneOf(verdicts, 'What the hook decided; null: its answer was none')),
    status: nullable(Type.Integer({ description: 'Of the answer; null: there was none' })),
    durationMs,
    error: nullable(Type.String({ description: 'Why the answer counts as none' })),
    requestId: Type.String({ pattern: '^req_' }),
  },
  'HookTest',
);
export type HookTest = Static<typeof HookTest>;

const count = (description: string) => Type.Integer({ minimum: 0, description });
export const HookStats = open(
  {
    since: Timestamp,
    calls: count('Calls that are in the request log'),
    failures: count('of these: without a usable answer'),
    allowed: count('of these: allowed'),
    rejected: count('of these: rejected'),
    rewritten: count('of these: rewritten'),
    p50Ms: nullable(Type.Integer({ minimum: 0, description: 'Half of the calls took no longer' })),
    p99Ms: nullable(Type.Integer({ minimum: 0, description: '99 of 100 calls took no longer' })),
  },
  'HookStats',
);
export type HookStats = Static<typeof HookStats>;

const id = Type.String({ minLength: 1 });
/** hooks#before-send: `data` of the request. */
export const BeforeSend = open(
  {
    conversation: open({
      id,
      type: oneOf(['direct', 'group'], 'Of the conversation'),
      name: nullable(Type.String()),
      metadata: Metadata,
    }),
    senderId: nullable(Type.String({ description: 'null: a system message' })),
    clientMsgId: nullable(Type.String()),
    edit: nullable(open({ messageId: id, version: Type.Integer({ description: 'The version it edits' }) })),
    message: open({
      text: nullable(Type.String()),
      replyTo: nullable(id),
      threadId: nullable(id),
      mentions: Type.Array(Mention),
      attachments: Type.Array(
        open({ id, name: Type.String(), size: Type.Integer(), mimeType: Type.String() }),
      ),
      metadata: Metadata,
      poll: optional(open({ question: Type.String(), options: Type.Array(open({ text: Type.String() })) })),
    }),
  },
  'BeforeSend',
);
export type BeforeSend = Static<typeof BeforeSend>;

/** hooks#answer: what the hook may answer; fields that are not here are refused. */
export const BeforeSendAnswer = Type.Union([
  closed({ action: Type.Literal('allow') }),
  closed({
    action: Type.Literal('reject'),
    reason: optional(Type.String({ minLength: 1, maxLength: limits.hookReasonCharacters })),
  }),
  closed({
    action: Type.Literal('rewrite'),
    text: optional(nullable(Text)),
    mentions: optional(NewMentions),
    metadata: optional(Metadata),
  }),
]);
export type BeforeSendAnswer = Static<typeof BeforeSendAnswer>;
