import { Type } from '../type.ts';
import { environmentIdPattern } from '../ids.ts';
import type { PlanName } from '../plans.ts';
import { IdParam, optional, page, pageQuery } from '../schemas/common.ts';
import {
  AuditEntry,
  Environment,
  EnvironmentKind,
  EnvironmentName,
  EnvironmentSettingsChange,
  EnvironmentStatus,
  EnvironmentWithKey,
  PlanNameSchema,
  SecretKey,
  SecretKeyWithSecret,
} from '../schemas/environments.ts';
import { operation, table } from './define.ts';

/** dashboard#environments. */

const callers = ['dashboard', 'operator'] as const;

const environments = { tag: 'Environments', callers } as const;

const keys = { tag: 'Keys', callers } as const;

export const environmentsOperations = table(
  operation('environments.list', 'GET /v1/environments', {
    ...environments,
    scope: 'organizations',
    summary: 'List environments, oldest first',
    text: 'The environments of the caller’s organizations.',
    query: pageQuery,
    response: page(Environment),
  }),

  operation('environments.create', 'POST /v1/environments', {
    ...environments,
    scope: 'organization',
    permission: 'environments.manage',
    summary: 'Create an environment; its first secret key is shown this once',
    text: 'Environments are separate: each has its own users, keys and limits. Development environments may accept unsigned tokens; production environments never do.',
    body: {
      organizationId: IdParam,
      name: EnvironmentName,
      kind: EnvironmentKind,
      plan: optional(Type.Unsafe<PlanName>({ ...PlanNameSchema, description: 'For the operator alone' })),
      id: optional(Type.String({ pattern: environmentIdPattern, description: 'For the operator alone' })),
    },
    statuses: [201],
    response: EnvironmentWithKey,
    errors: ['not_found'],
  }),

  operation('environments.get', 'GET /v1/environments/{environmentId}', {
    ...environments,
    callers: ['dashboard'],
    scope: 'organization',
    permission: 'environments.read',
    summary: 'Read an environment',
    text: 'The environment, with its settings and its plan.',
    params: { environmentId: IdParam },
    response: Environment,
    errors: ['not_found'],
  }),

  operation('environments.update', 'PATCH /v1/environments/{environmentId}', {
    ...environments,
    scope: 'organization',
    permission: 'environments.manage',
    summary: 'Rename an environment, suspend it or make it active, change its settings',
    text: 'A suspended environment refuses every request and closes its sockets with 4003; nothing is lost.',
    params: { environmentId: IdParam },
    body: {
      name: optional(EnvironmentName),
      status: optional(EnvironmentStatus),
      settings: optional(EnvironmentSettingsChange),
      plan: optional(PlanNameSchema),
      local: optional(
        Type.Boolean({
          description:
            'Whether development tokens work from the machine of the service only; for the operator alone',
        }),
      ),
      confirm: optional(
        Type.String({
          description: 'The name of the environment: needed to suspend one of the kind production',
        }),
      ),
    },
    response: Environment,
    errors: ['not_found'],
  }),

  operation('keys.list', 'GET /v1/keys', {
    ...keys,
    permission: 'environments.read',
    summary: 'List secret keys, oldest first, without their secrets',
    text: '`lastUsedAt` shows which keys are in use.',
    query: pageQuery,
    response: page(SecretKey),
  }),

  operation('keys.create', 'POST /v1/keys', {
    ...keys,
    permission: 'keys.manage',
    recent: true,
    summary: 'Make a secret key; it is shown this once',
    text: 'Several keys may be live at once: create the new one, change your servers over, then revoke the old one.',
    body: { name: optional(Type.String({ maxLength: 200 })) },
    statuses: [201],
    response: SecretKeyWithSecret,
  }),

  operation('keys.revoke', 'DELETE /v1/keys/{keyId}', {
    ...keys,
    permission: 'keys.manage',
    summary: 'Revoke a secret key: it and every token that it signed are refused from now on',
    text: 'Takes effect from the next request on; sockets whose tokens the key signed close.',
    params: { keyId: IdParam },
    errors: ['not_found'],
  }),

  operation('audit.list', 'GET /v1/audit', {
    tag: 'Audit',
    callers,
    scope: 'organizations',
    summary: 'List changes and their authors, newest first',
    text: 'Changes to settings, keys, people and webhooks, and readings of message content. It contains no secrets.',
    query: {
      ...pageQuery,
      environmentId: optional(IdParam),
      action: optional(Type.String({ minLength: 1, maxLength: 100 })),
      actor: optional(Type.String({ minLength: 1, maxLength: 320 })),
      format: optional(
        Type.Unsafe<'json' | 'csv' | 'jsonl'>({
          type: 'string',
          enum: ['json', 'csv', 'jsonl'],
          default: 'json',
          description: 'csv and jsonl (a JSON object a line) export all of it, without pages',
        }),
      ),
    },
    response: page(AuditEntry),
    formats: ['application/json', 'text/csv', 'application/jsonl'],
    errors: ['not_found'],
  }),
);
