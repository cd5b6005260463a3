import type { WebhookEventName } from '@parley/protocol';
import { catalogue, webhookOnly } from '../../log/catalogue.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Vault } from '../../platform/secrets.ts';
import { loadReferences } from '../events/references.ts';
import type { References } from '../events/references.ts';
import type { KeptEvent } from '../events/sql.ts';
import { erasedSince } from '../users/sql.ts';
import { loadPayloads } from './sql/payloads.ts';
import { erasedContext } from './signature.ts';

/**
 * The body of a delivery: what was committed with its event, the same bytes on every attempt and replay. It comes
 * from the stored payload (payloads.ts), or is rendered from what cannot have changed. A message that was soft-deleted
 * before its payload was stored is shown as its tombstone. If content was hard-deleted or a user was erased, nothing
 * can be sent.
 */

export interface Renderable extends KeptEvent {
  no: number;
  envId: string;
  endpointId: string;
  eventId: string;
  sealed: Buffer | null;
  eventAt: string;
}

export const testEvent = 'webhook.test';

/** Bodies by delivery number; a missing one can no longer be rendered. */
export async function render(
  db: Queryable,
  vault: Vault,
  rows: readonly Renderable[],
): Promise<Map<number, string>> {
  const references = await loadReferences(
    db,
    rows.filter((r) => !shapes.get(r.type)?.kept),
  );
  // Loaded after the messages: if one was changed meanwhile, its earlier data is stored by now.
  const payloads = await loadPayloads(
    db,
    rows.map((r) => r.eventId),
  );
  // Events from before payloads were stored (migrations/0013) are rendered from the present state.
  const older = rows.filter((r) => shapes.get(r.type)?.kept && !payloads.has(r.eventId));
  const asNow = older.length === 0 ? references : await loadReferences(db, older);
  const found = rows.flatMap((row) => {
    const kept = payloads.get(row.eventId);
    const data =
      kept === undefined ? rendered(row, shapes.get(row.type)?.kept ? asNow : references, vault) : kept;
    return data === null ? [] : [{ row, data }];
  });
  const named = found.filter(({ data }) => data.includes(aliasStart));
  const gone = await erasedSince(
    db,
    named.flatMap(({ row, data }) =>
      [...data.matchAll(alias)].map(([, id]) => ({ env: row.env, id: id!, at: row.eventAt, no: row.no })),
    ),
  );
  return new Map(
    found
      .filter(({ row }) => !gone.has(row.no))
      .map(({ row, data }) => {
        const { eventId: id, type, eventAt: createdAt, envId: env } = row;
        return [row.no, `${JSON.stringify({ id, type, createdAt, env }).slice(0, -1)},"data":${data}}`];
      }),
  );
}

/** The beginning of an erased user's alias. Events from before the erasure showed the user's id. */
const aliasStart = '"deleted:';
const alias = /"(deleted:[A-Za-z0-9]+)"/g;

interface Shape {
  data: (event: never) => object;
  /** True if the event shows something that can change, so that its data was stored at the commit. */
  kept: boolean;
}
const shapes = new Map<string, Shape>([
  ...Object.values(catalogue).flatMap(({ webhook }): [WebhookEventName, Shape][] =>
    webhook ? [[webhook.name, { data: webhook.data, kept: webhook.kept ?? false }]] : [],
  ),
  ...Object.entries(webhookOnly).map(([name, { data, kept }]): [string, Shape] => [
    name,
    { data, kept: kept ?? false },
  ]),
]);

const showsMessage = new Set(['message.created', 'message.updated']);

/** The JSON of `data`; null if what the event showed no longer exists. */
function rendered(row: Renderable, references: References, vault: Vault): string | null {
  if (row.type === testEvent) return JSON.stringify({ webhookId: row.endpointId });
  const shape = shapes.get(row.type)!;
  const cid = references.conversationId(row);
  const message = references.message(row);
  if ((row.conv !== null && cid === undefined) || (row.message !== null && !message)) return null;
  // A soft-deleted message has its tombstone to show, and one that was deleted for good has nothing.
  if (showsMessage.has(row.type) && references.hardDeleted(row)) return null;
  const event = {
    cid,
    seq: row.seq,
    actorId: references.actorId(row),
    message,
    conversation: references.conversation(row),
    users: references.users(row),
    data: row.data === null ? {} : (JSON.parse(row.data) as unknown),
    secret: row.sealed && vault.open(row.sealed, erasedContext(row.env)).toString(),
  };
  // Which of these fields an event has depends on its type.
  return JSON.stringify(shape.data(event as never));
}
