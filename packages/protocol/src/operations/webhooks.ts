import Type from 'typebox';
import { limits } from '../limits.ts';
import { IdParam, Moment, nullable, open, optional, page, pageQuery } from '../schemas/common.ts';
import {
  WebhookDelivery,
  WebhookEndpoint,
  WebhookEndpointWithSecret,
  WebhookStatus,
} from '../schemas/webhooks.ts';
import { webhookEventNames } from '../webhook-events.ts';
import type { WebhookEventName } from '../webhook-events.ts';
import { operation } from './define.ts';

const tag = 'Webhooks';
const callers = ['server', 'dashboard'] as const;
const params = { webhookId: IdParam };
const errors = ['not_found'] as const;

const url = Type.String({
  minLength: 1,
  maxLength: limits.webhookUrlCharacters,
  description: 'https, a public address, no credentials in it',
});
const events = Type.Array(Type.Unsafe<WebhookEventName>({ type: 'string', enum: [...webhookEventNames] }), {
  minItems: 1,
  maxItems: 100,
  description: 'Event types to send',
});
const description = nullable(Type.String({ maxLength: limits.webhookDescriptionCharacters }));

export const webhooksCreate = operation('webhooks.create', 'POST /v1/webhooks', {
  summary: 'Add an endpoint; its secret is shown this once. At most 20 per environment',
  tag,
  callers,
  permission: 'webhooks.manage',
  body: { url, events, description: optional(description) },
  statuses: [201],
  response: WebhookEndpointWithSecret,
});

export const webhooksList = operation('webhooks.list', 'GET /v1/webhooks', {
  summary: 'List endpoints, oldest first',
  tag,
  callers,
  permission: 'environments.read',
  query: pageQuery,
  response: page(WebhookEndpoint),
});

export const webhooksGet = operation('webhooks.get', 'GET /v1/webhooks/{webhookId}', {
  summary: 'Read an endpoint',
  tag,
  callers,
  permission: 'environments.read',
  params,
  response: WebhookEndpoint,
  errors,
});

export const webhooksUpdate = operation('webhooks.update', 'PATCH /v1/webhooks/{webhookId}', {
  summary: 'Change an endpoint, disable it or enable it again',
  tag,
  callers,
  permission: 'webhooks.manage',
  params,
  body: {
    url: optional(url),
    events: optional(events),
    description: optional(description),
    status: optional(WebhookStatus),
  },
  response: WebhookEndpoint,
  errors,
});

export const webhooksDelete = operation('webhooks.delete', 'DELETE /v1/webhooks/{webhookId}', {
  summary: 'Remove an endpoint with its deliveries',
  tag,
  callers,
  permission: 'webhooks.manage',
  params,
  errors,
});

export const webhooksRotateSecret = operation(
  'webhooks.rotateSecret',
  'POST /v1/webhooks/{webhookId}/rotate-secret',
  {
    summary: 'Make a new secret, shown this once; for 24 hours deliveries carry signatures of both',
    tag,
    callers,
    permission: 'webhooks.manage',
    params,
    response: WebhookEndpointWithSecret,
    errors,
  },
);

export const webhooksTest = operation('webhooks.test', 'POST /v1/webhooks/{webhookId}/test', {
  summary: 'Send the event webhook.test once and answer with its delivery',
  tag,
  callers,
  permission: 'webhooks.manage',
  params,
  response: WebhookDelivery,
  errors,
});

export const webhooksDeliveries = operation(
  'webhooks.deliveries',
  'GET /v1/webhooks/{webhookId}/deliveries',
  {
    summary: 'The delivery log, newest first',
    tag,
    callers,
    permission: 'environments.read',
    params,
    query: pageQuery,
    response: page(WebhookDelivery),
    errors,
  },
);

export const webhooksReplay = operation(
  'webhooks.replay',
  'POST /v1/webhooks/{webhookId}/deliveries/{deliveryId}/replay',
  {
    summary: 'Deliver an event of the last 72 hours once more, as a new delivery with the same event id',
    tag,
    callers,
    permission: 'webhooks.manage',
    params: { ...params, deliveryId: IdParam },
    statuses: [202],
    response: WebhookDelivery,
    errors,
  },
);

export const webhooksReplayFailed = operation(
  'webhooks.replayFailed',
  'POST /v1/webhooks/{webhookId}/replay-failed',
  {
    summary:
      'Deliver once more what failed since a moment of the last 72 hours and was not delivered later, oldest first, at most 1,000 a call',
    tag,
    callers,
    permission: 'webhooks.manage',
    params,
    body: { since: Moment },
    statuses: [202],
    response: open({
      replayed: Type.Integer({ minimum: 0 }),
      more: Type.Boolean({ description: 'There is more: call again' }),
    }),
    errors,
  },
);
