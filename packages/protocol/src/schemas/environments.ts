import { Type } from '../type.ts';
import type { Static, TProperties } from 'typebox';
import { featureNames } from '../features.ts';
import { planNames } from '../plans.ts';
import type { PlanName } from '../plans.ts';
import { closed, line, nullable, open, optional, Timestamp } from './common.ts';

/** identity#environments: environments, their settings and their keys, and the record of changes to them. */

const oneOf = <const V extends readonly string[]>(values: V, options: object = {}) =>
  Type.Unsafe<V[number]>({ type: 'string', enum: [...values], ...options });

export const EnvironmentKind = oneOf(['production', 'development']);
export type EnvironmentKind = Static<typeof EnvironmentKind>;
export const EnvironmentStatus = oneOf(['active', 'suspended']);
export const PlanNameSchema = Type.Unsafe<PlanName>({ type: 'string', enum: [...planNames] });
export const EnvironmentName = line({ minLength: 1, maxLength: 200 });

/** Every setting of an environment, once, with its default. */
const settings = {
  clientConversationCreation: oneOf(['all', 'direct', 'none'], {
    default: 'all',
    description: 'Which conversations clients may create',
  }),
  devTokens: Type.Boolean({
    default: true,
    description: 'Unsigned development tokens are accepted; always false in production',
  }),
  pushMode: oneOf(['providers', 'webhook', 'off'], {
    default: 'providers',
    description: 'Who sends pushes: this service, the customer on the event notification.needed, or nobody',
  }),
  pushContent: oneOf(['full', 'name', 'none'], {
    default: 'full',
    description: 'What pushes show: names and text, names alone, or neither',
  }),
  defaultLevel: oneOf(['all', 'mentions'], {
    default: 'all',
    description: 'Which messages members are pushed who have chosen nothing',
  }),
  ownersSetRoles: Type.Boolean({
    default: false,
    description: 'Owners of a group may make members moderators, and moderators members',
  }),
  disabledFeatures: Type.Array(oneOf(featureNames), {
    default: [],
    maxItems: featureNames.length,
    uniqueItems: true,
    description: 'Features that are off: their calls and frames are `403 feature_disabled`',
  }),
} satisfies TProperties;

export const EnvironmentSettings = open(settings, 'EnvironmentSettings');
export type EnvironmentSettings = Static<typeof EnvironmentSettings>;
/** What a caller may send: only the settings that change. */
export const EnvironmentSettingsChange = closed({
  clientConversationCreation: optional(settings.clientConversationCreation),
  devTokens: optional(settings.devTokens),
  pushMode: optional(settings.pushMode),
  pushContent: optional(settings.pushContent),
  defaultLevel: optional(settings.defaultLevel),
  ownersSetRoles: optional(settings.ownersSetRoles),
  disabledFeatures: optional(settings.disabledFeatures),
});
export type EnvironmentSettingsChange = Static<typeof EnvironmentSettingsChange>;

export const defaultSettings = Object.fromEntries(
  Object.entries(settings).map(([name, schema]) => [name, (schema as { default?: unknown }).default]),
) as unknown as EnvironmentSettings;

/** The settings in force: those not given have their defaults, and production never accepts development tokens. */
export const effectiveSettings = (
  kind: EnvironmentKind,
  given: EnvironmentSettingsChange,
): EnvironmentSettings => ({
  ...defaultSettings,
  ...given,
  ...(kind === 'production' ? { devTokens: false } : {}),
});

const environment = {
  id: Type.String({ pattern: '^env_' }),
  name: Type.String(),
  kind: EnvironmentKind,
  status: EnvironmentStatus,
  settings: EnvironmentSettings,
  plan: PlanNameSchema,
  createdAt: Timestamp,
  local: Type.Boolean({
    description:
      'The first start made it by itself: development tokens are accepted from the machine of the service only',
  }),
};
export const Environment = open(environment, 'Environment');
export type Environment = Static<typeof Environment>;

/** The secret key is only in the answer to the creation. */
export const EnvironmentWithKey = open({ ...environment, secretKey: Type.String() }, 'EnvironmentWithKey');
export type EnvironmentWithKey = Static<typeof EnvironmentWithKey>;

const key = {
  id: Type.String({ description: 'The part of the key that is no secret; the `kid` of tokens it signs' }),
  name: Type.String(),
  createdAt: Timestamp,
  lastUsedAt: nullable(Timestamp),
  revokedAt: nullable(Timestamp),
};
export const SecretKey = open(key, 'SecretKey');
export type SecretKey = Static<typeof SecretKey>;
export const SecretKeyWithSecret = open({ ...key, secretKey: Type.String() }, 'SecretKeyWithSecret');
export type SecretKeyWithSecret = Static<typeof SecretKeyWithSecret>;

const fields = nullable(Type.Unsafe<Record<string, unknown>>({ type: 'object' }));
export const AuditEntry = open(
  {
    id: Type.String({ pattern: '^aud_' }),
    at: Timestamp,
    organizationId: Type.String({ pattern: '^org_' }),
    environmentId: nullable(Type.String({ pattern: '^env_' })),
    actor: Type.String({ description: 'Who did it' }),
    action: Type.String({ description: 'The name of the operation' }),
    target: nullable(Type.String({ description: 'The id of what it was done to' })),
    ip: nullable(Type.String()),
    requestId: Type.String({ pattern: '^req_' }),
    changes: open({ before: fields, after: fields }),
  },
  'AuditEntry',
);
export type AuditEntry = Static<typeof AuditEntry>;
