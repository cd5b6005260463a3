import { Type } from '../type.ts';
import type { Static } from 'typebox';
import { nullable, open, optional, Timestamp } from './common.ts';

/** webhooks#endpoint and webhooks#deliveries: the records as the service sends them. */

export const WebhookStatus = Type.Union([Type.Literal('enabled'), Type.Literal('disabled')]);

const endpoint = {
  id: Type.String({ pattern: '^wh_' }),
  url: Type.String(),
  events: Type.Array(Type.String()),
  description: nullable(Type.String()),
  status: WebhookStatus,
  createdAt: Timestamp,
  disabledAt: nullable(Timestamp),
  disabledReason: nullable(Type.String()),
};
export const WebhookEndpoint = open(endpoint, 'WebhookEndpoint');
export type WebhookEndpoint = Static<typeof WebhookEndpoint>;

/** Only creation and rotation show the secret. */
export const WebhookEndpointWithSecret = open(
  { ...endpoint, secret: Type.String({ pattern: '^whsec_' }) },
  'WebhookEndpointWithSecret',
);
export type WebhookEndpointWithSecret = Static<typeof WebhookEndpointWithSecret>;

export const WebhookAttempt = open({
  at: Timestamp,
  status: nullable(Type.Integer({ description: 'Of the answer; null: there was none' })),
  durationMs: Type.Integer({ minimum: 0 }),
  error: optional(Type.String()),
  requestId: Type.String({ pattern: '^req_' }),
});
export type WebhookAttempt = Static<typeof WebhookAttempt>;

export const WebhookDelivery = open(
  {
    id: Type.String({ pattern: '^whd_' }),
    eventId: Type.String({ pattern: '^evt_' }),
    eventType: Type.String(),
    status: Type.Union([Type.Literal('pending'), Type.Literal('succeeded'), Type.Literal('failed')]),
    attempts: Type.Array(WebhookAttempt),
    nextAttemptAt: nullable(Timestamp),
    createdAt: Timestamp,
    payloadAvailable: Type.Boolean({ description: 'It can be replayed' }),
  },
  'WebhookDelivery',
);
export type WebhookDelivery = Static<typeof WebhookDelivery>;
