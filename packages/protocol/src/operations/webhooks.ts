import { Type } from '../type.ts';
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
import { operation, pageCost, table } from './define.ts';

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

export const webhooksOperations = table(
  operation('webhooks.create', 'POST /v1/webhooks', {
    summary: 'Add an endpoint; its secret is shown this once. At most 20 per environment',
    text: 'The URL is https and public. Keep the secret: deliveries are signed with it, and nothing shows it again. Without `events` nothing is delivered.',
    tag,
    callers,
    permission: 'webhooks.manage',
    body: { url, events, description: optional(description) },
    statuses: [201],
    response: WebhookEndpointWithSecret,
  }),

  operation('webhooks.list', 'GET /v1/webhooks', {
    summary: 'List endpoints, oldest first',
    text: 'Endpoints are shown without their secrets.',
    tag,
    callers,
    permission: 'environments.read',
    query: pageQuery,
    response: page(WebhookEndpoint),
  }),

  operation('webhooks.get', 'GET /v1/webhooks/{webhookId}', {
    summary: 'Read an endpoint',
    text: 'The endpoint is shown without its secret.',
    tag,
    callers,
    permission: 'environments.read',
    params,
    response: WebhookEndpoint,
    errors,
  }),

  operation('webhooks.update', 'PATCH /v1/webhooks/{webhookId}', {
    summary: 'Change an endpoint, disable it or enable it again',
    text: 'An endpoint that is enabled again receives new events; `replayFailed` sends the missed ones.',
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
  }),

  operation('webhooks.delete', 'DELETE /v1/webhooks/{webhookId}', {
    summary: 'Remove an endpoint with its deliveries',
    text: 'Pending deliveries are not made any more.',
    tag,
    callers,
    permission: 'webhooks.manage',
    params,
    errors,
  }),

  operation('webhooks.rotateSecret', 'POST /v1/webhooks/{webhookId}/rotate-secret', {
    summary: 'Make a new secret, shown this once; for 24 hours deliveries carry signatures of both',
    text: 'Deliveries carry signatures of both secrets for 24 hours, so receivers lose nothing while they change over.',
    tag,
    callers,
    permission: 'webhooks.manage',
    params,
    response: WebhookEndpointWithSecret,
    errors,
  }),

  operation('webhooks.test', 'POST /v1/webhooks/{webhookId}/test', {
    summary: 'Send the event webhook.test once and answer with its delivery',
    text: 'The answer contains the receiver’s answer. A test never disables an endpoint.',
    tag,
    callers,
    permission: 'webhooks.manage',
    params,
    response: WebhookDelivery,
    errors,
    cost: 0,
  }),

  operation('webhooks.deliveries', 'GET /v1/webhooks/{webhookId}/deliveries', {
    summary: 'The delivery log, newest first',
    text: 'Each delivery has its attempts: when, with which status, and how long it took.',
    tag,
    callers,
    permission: 'environments.read',
    params,
    query: pageQuery,
    response: page(WebhookDelivery),
    errors,
    cost: pageCost(100),
  }),

  operation('webhooks.replay', 'POST /v1/webhooks/{webhookId}/deliveries/{deliveryId}/replay', {
    summary: 'Deliver an event of the last 72 hours once more, as a new delivery with the same event id',
    text: 'Sends the same bytes under the same `webhook-id`, as long as the payload is kept (72 hours).',
    tag,
    callers,
    permission: 'webhooks.manage',
    params: { ...params, deliveryId: IdParam },
    statuses: [202],
    response: WebhookDelivery,
    errors,
  }),

  operation('webhooks.replayFailed', 'POST /v1/webhooks/{webhookId}/replay-failed', {
    summary:
      'Deliver failed events of the last 72 hours again, from a given time on and oldest first, unless they were delivered later; at most 1,000 in one call',
    text: 'Use it after an outage of the receiver: each event that failed is delivered again.',
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
  }),
);
