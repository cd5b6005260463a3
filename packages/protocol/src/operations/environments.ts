import Type from 'typebox';
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
import { operation } from './define.ts';

/** DECISIONS, Control plane. */

const callers = ['dashboard', 'operator'] as const;

const environments = { tag: 'Environments', callers } as const;

export const environmentsList = operation('environments.list', 'GET /v1/environments', {
  ...environments,
  scope: 'organizations',
  summary: 'List environments, oldest first',
  query: pageQuery,
  response: page(Environment),
});

export const environmentsCreate = operation('environments.create', 'POST /v1/environments', {
  ...environments,
  scope: 'organization',
  permission: 'environments.manage',
  summary: 'Create an environment; its first secret key is shown this once',
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
});

export const environmentsUpdate = operation('environments.update', 'PATCH /v1/environments/{environmentId}', {
  ...environments,
  scope: 'organization',
  permission: 'environments.manage',
  summary: 'Rename an environment, suspend it or make it active, change its settings',
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
});

export const environmentsGet = operation('environments.get', 'GET /v1/environments/{environmentId}', {
  ...environments,
  callers: ['dashboard'],
  scope: 'organization',
  permission: 'environments.read',
  summary: 'Read an environment',
  params: { environmentId: IdParam },
  response: Environment,
  errors: ['not_found'],
});

const keys = { tag: 'Keys', callers } as const;

export const keysList = operation('keys.list', 'GET /v1/keys', {
  ...keys,
  permission: 'environments.read',
  summary: 'List secret keys, oldest first, without their secrets',
  query: pageQuery,
  response: page(SecretKey),
});

export const keysCreate = operation('keys.create', 'POST /v1/keys', {
  ...keys,
  permission: 'keys.manage',
  recent: true,
  summary: 'Make a secret key; it is shown this once',
  body: { name: optional(Type.String({ maxLength: 200 })) },
  statuses: [201],
  response: SecretKeyWithSecret,
});

export const keysRevoke = operation('keys.revoke', 'DELETE /v1/keys/{keyId}', {
  ...keys,
  permission: 'keys.manage',
  summary: 'Revoke a secret key: it and every token that it signed are refused from now on',
  params: { keyId: IdParam },
  errors: ['not_found'],
});

export const auditList = operation('audit.list', 'GET /v1/audit', {
  tag: 'Audit',
  callers,
  scope: 'organizations',
  summary: 'Who changed what, newest first',
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
});
