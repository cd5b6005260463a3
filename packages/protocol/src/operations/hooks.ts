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
    summary: 'Set or replace a hook; only this answer shows the secret of a new hook',
    text: 'Within a second, the service starts to send messages of clients to the URL before it stores them, and the endpoint allows, rejects or rewrites them. An omitted field gets its default. The URL must be https and public. Requests are signed with the secret like webhooks; the secret stays when the hook is replaced.',
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
    text: 'The request has `test: true`. The answer has the decision of the hook, or the reason why its answer is not valid. A test counts neither as a call nor as a failure.',
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
    summary: 'Read the response times and decisions of the hook',
    text: 'Of the calls of the last hour that are in the request log, among its newest 20,000 entries.',
    response: HookStats,
    errors,
    cost: 3,
  }),
);
