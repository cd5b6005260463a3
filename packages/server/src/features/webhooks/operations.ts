import { ApiError, limits } from '@parley/protocol';
import type { WebhookEndpointWithSecret } from '@parley/protocol';
import { invalid, notFound } from '../../platform/api-errors.ts';
import { enqueue } from '../../platform/jobs/sql/jobs.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { difference, record } from '../audit/operations.ts';
import type { Context, Operation } from '../context.ts';
import { cut, isString, listPage } from '../pages.ts';
import { moment } from '../time.ts';
import { unavailable, webhookQueue } from './deliver.ts';
import { loadDue } from './sql/deliveries.ts';
import { render, testEvent } from './render.ts';
import { makeSecret, secretContext } from './signature.ts';
import * as sql from './sql.ts';
import { checkedUrl } from './target.ts';
import type { DeliveryRow, EndpointRow } from './sql.ts';

async function existing(ctx: Context, db: Queryable, id: string): Promise<EndpointRow> {
  const row = await sql.findEndpoint(db, ctx.env.no, id);
  if (!row) throw notFound('Webhook endpoint');
  return row;
}

const settingsOf = ({ url, events, description, status }: EndpointRow): object => ({
  url,
  events,
  description,
  status,
});

/** Makes the endpoint's new current secret; only this answer ever shows it. */
async function newSecret(ctx: Context, db: Queryable, row: EndpointRow): Promise<WebhookEndpointWithSecret> {
  const { sealed, shown } = makeSecret(ctx.services, secretContext(row.id));
  await sql.secrets.add(db, row.no, sealed);
  return { ...sql.viewEndpoint(row), secret: shown };
}

export const create: Operation<Context, 'webhooks.create'> = (ctx, input) => {
  const url = checkedUrl(ctx.services.webhooks.outbound, input.url);
  return ctx.db.tx(async (tx) => {
    await sql.lockEnvironment(tx, ctx.env.no);
    if ((await sql.countEndpoints(tx, ctx.env.no)) >= limits.webhookEndpoints)
      throw new ApiError('invalid_request', {
        message: `An environment has at most ${limits.webhookEndpoints} webhook endpoints.`,
      });
    const row = await sql.insertEndpoint(tx, ctx.env.no, {
      id: ctx.services.ids.make('webhook'),
      url,
      events: [...new Set(input.events)],
      description: input.description ?? null,
    });
    await sql.setListeners(tx, ctx.env.no);
    await record(ctx, tx, { action: 'webhooks.create', target: row.id, after: settingsOf(row) });
    return newSecret(ctx, tx, row);
  });
};

export const list: Operation<Context, 'webhooks.list'> = (ctx, input) =>
  listPage(
    input,
    isString,
    (after, most) => sql.listEndpoints(ctx.db, ctx.env.no, after ?? '', most),
    (row) => row.id,
    sql.viewEndpoint,
  );

export const get: Operation<Context, 'webhooks.get'> = async (ctx, input) =>
  sql.viewEndpoint(await existing(ctx, ctx.db, input.webhookId));

export const update: Operation<Context, 'webhooks.update'> = (ctx, input) => {
  const { webhookId: _, ...fields } = input;
  if (Object.keys(fields).length === 0) throw invalid('url', 'Give url, events, description or status.');
  if (input.url !== undefined) checkedUrl(ctx.services.webhooks.outbound, input.url);
  return ctx.db.tx(async (tx) => {
    await sql.lockEnvironment(tx, ctx.env.no);
    const row = await existing(ctx, tx, input.webhookId);
    const updated = await sql.updateEndpoint(tx, {
      ...row,
      url: input.url ?? row.url,
      events: input.events ? [...new Set(input.events)] : row.events,
      description: input.description === undefined ? row.description : input.description,
      status: input.status ?? row.status,
    });
    await sql.setListeners(tx, ctx.env.no);
    const changes = difference(settingsOf(row), settingsOf(updated));
    if (changes) await record(ctx, tx, { action: 'webhooks.update', target: row.id, ...changes });
    return sql.viewEndpoint(updated);
  });
};

/** Deletes an endpoint. Its deliveries cannot be read from then on, and are deleted when their time is over. */
export const remove: Operation<Context, 'webhooks.delete'> = async (ctx, input) => {
  await ctx.db.tx(async (tx) => {
    await sql.lockEnvironment(tx, ctx.env.no);
    const row = await existing(ctx, tx, input.webhookId);
    await sql.deleteEndpoint(tx, ctx.env.no, row.id);
    await sql.setListeners(tx, ctx.env.no);
    await record(ctx, tx, { action: 'webhooks.delete', target: row.id, before: settingsOf(row) });
  });
};

export const rotateSecret: Operation<Context, 'webhooks.rotateSecret'> = (ctx, input) =>
  ctx.db.tx(async (tx) => {
    await sql.lockEnvironment(tx, ctx.env.no);
    const row = await existing(ctx, tx, input.webhookId);
    await record(ctx, tx, { action: 'webhooks.rotateSecret', target: row.id });
    return newSecret(ctx, tx, row);
  });

/**
 * Makes one attempt before the answer. Under an Idempotency-Key it is made right after the answer, because that
 * transaction must not wait for it.
 */
export const test: Operation<Context, 'webhooks.test'> = async (ctx, input) => {
  const { webhooks, ids } = ctx.services;
  const row = await existing(ctx, ctx.db, input.webhookId);
  const delivery = await ctx.db.tx(async (tx) => {
    const made = await sql.insertDelivery(tx, {
      env: ctx.env.no,
      endpoint: row.no,
      eventId: ids.make('event'),
      type: testEvent,
    });
    await record(ctx, tx, { action: 'webhooks.test', target: row.id });
    if (ctx.idempotencyKey !== undefined) {
      await enqueue(tx, webhookQueue, [{ key: row.no, ref: made.no }]);
      tx.afterCommit(webhooks.queued);
    }
    return made;
  });
  if (ctx.idempotencyKey === undefined) await webhooks.deliver(delivery.no);
  return sql.viewDelivery((await sql.findDelivery(ctx.db, row.no, delivery.id)) ?? delivery);
};

/** Adds to each delivery whether it can still be sent again. */
async function withAvailability(
  ctx: Context,
  db: Queryable,
  rows: readonly DeliveryRow[],
): Promise<DeliveryRow[]> {
  const due = await loadDue(
    db,
    rows.filter((r) => r.payloadAvailable).map((r) => r.no),
  );
  const bodies = await render(db, ctx.services.vault, [...due.values()]);
  return rows.map((row) => ({ ...row, payloadAvailable: bodies.has(row.no) }));
}

export const deliveries: Operation<Context, 'webhooks.deliveries'> = async (ctx, input) => {
  const row = await existing(ctx, ctx.db, input.webhookId);
  return listPage(
    input,
    isString,
    async (before, most) =>
      withAvailability(ctx, ctx.db, await sql.listDeliveries(ctx.db, row.no, before, most)),
    ({ id }) => id,
    sql.viewDelivery,
  );
};

export const replay: Operation<Context, 'webhooks.replay'> = async (ctx, input) => {
  return ctx.db.tx(async (tx) => {
    const row = await existing(ctx, tx, input.webhookId);
    const delivery = await sql.findDelivery(tx, row.no, input.deliveryId);
    if (!delivery) throw notFound('Delivery');
    if (!delivery.payloadAvailable)
      throw new ApiError('not_found', {
        message: `Events can be replayed for ${limits.webhookReplayHours} hours.`,
      });
    const [{ payloadAvailable } = delivery] = await withAvailability(ctx, tx, [delivery]);
    if (!payloadAvailable)
      throw new ApiError('not_found', { message: `This event cannot be replayed: ${unavailable}.` });
    if (row.status === 'disabled')
      throw new ApiError('invalid_request', { message: 'The endpoint is disabled: enable it first.' });
    await record(ctx, tx, { action: 'webhooks.replay', target: delivery.id });
    const [made] = await sql.copyDeliveries(tx, [delivery.no]);
    await enqueue(tx, webhookQueue, [{ key: row.no, ref: made!.no }]);
    tx.afterCommit(ctx.services.webhooks.queued);
    return sql.viewDelivery(made!);
  });
};

const replayedAtOnce = 1_000;

/** For the time after an outage of the receiver: each event that failed and was not delivered since gets a new delivery. */
export const replayFailed: Operation<Context, 'webhooks.replayFailed'> = async (ctx, input) => {
  const since = moment('since', input.since);
  return ctx.db.tx(async (tx) => {
    const row = await existing(ctx, tx, input.webhookId);
    if (row.status === 'disabled')
      throw new ApiError('invalid_request', { message: 'The endpoint is disabled: enable it first.' });
    const failed = await sql.failedSince(tx, ctx.env.no, row.no, since, replayedAtOnce + 1);
    const { page, more } = cut(failed, replayedAtOnce);
    const made = await sql.copyDeliveries(tx, page);
    await enqueue(
      tx,
      webhookQueue,
      made.map((delivery) => ({ key: row.no, ref: delivery.no })),
    );
    if (made.length > 0)
      await record(ctx, tx, {
        action: 'webhooks.replayFailed',
        target: row.id,
        after: { since, replayed: made.length },
      });
    tx.afterCommit(ctx.services.webhooks.queued);
    return { replayed: made.length, more };
  });
};
