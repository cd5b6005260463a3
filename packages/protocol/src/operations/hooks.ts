import { page, pageQuery } from '../schemas/common.ts';
import {
  Hook,
  hookFields,
  HookKindParam,
  HookStats,
  HookTest,
  HookWithSecret,
  SetHook,
} from '../schemas/hooks.ts';
import { operation, table } from './define.ts';

const tagged = { tag: 'Hooks', callers: ['server', 'dashboard'] } as const;
const common = { ...tagged, params: { kind: HookKindParam } } as const;
const manage = { ...common, permission: 'webhooks.manage' } as const;
const read = { ...common, permission: 'environments.read' } as const;
const errors = ['not_found'] as const;

export const hooksOperations = table(
  operation('hooks.set', 'PUT /v1/hooks/{kind}', {
    ...manage,
    summary: 'Set a hook, or replace what is set; a new one has its secret in this answer alone',
    text: 'From within a second on, messages of clients are sent to the URL before they are stored, and it allows, rejects or rewrites them. A field that is left out gets its default. The URL is https and public. The secret signs requests as those of webhooks are signed; it stays when the hook is replaced.',
    body: hookFields,
    response: SetHook,
    cost: 2,
  }),

  operation('hooks.get', 'GET /v1/hooks/{kind}', {
    ...read,
    summary: 'Read a hook',
    text: 'The hook is shown without its secret.',
    response: Hook,
    errors,
  }),

  operation('hooks.list', 'GET /v1/hooks', {
    ...tagged,
    permission: 'environments.read',
    summary: 'The hooks of the environment',
    text: 'There is at most one of each kind. They are shown without their secrets.',
    query: pageQuery,
    response: page(Hook),
  }),

  operation('hooks.delete', 'DELETE /v1/hooks/{kind}', {
    ...manage,
    summary: 'Remove a hook',
    text: 'Within a second messages are sent without it. Also answers 204 if there was none.',
    cost: 2,
  }),

  operation('hooks.test', 'POST /v1/hooks/{kind}/test', {
    ...manage,
    summary: 'Ask the hook about a message that nobody sent',
    text: 'The request has `test: true`. The answer says what the hook decided, or why its answer counts as none. A test counts neither as a call nor as a failure.',
    response: HookTest,
    errors,
    repeatable: true,
    cost: 0,
  }),

  operation('hooks.rotateSecret', 'POST /v1/hooks/{kind}/rotate-secret', {
    ...manage,
    summary: 'Make a new secret, shown this once; for 24 hours requests carry signatures of both',
    text: 'Requests carry signatures of both secrets for 24 hours, so the hook works while it changes over.',
    response: HookWithSecret,
    errors,
    cost: 2,
  }),

  operation('hooks.stats', 'GET /v1/hooks/{kind}/stats', {
    ...read,
    summary: 'How fast the hook answers, and what it decides',
    text: 'Of the calls of the last hour that are in the request log, among its newest 20,000 entries.',
    response: HookStats,
    errors,
    cost: 3,
  }),
);
