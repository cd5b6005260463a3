import type { WebhookEventName } from '@parley/protocol';
import { catalogue, webhookOnly } from '../../log/catalogue.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Vault } from '../../platform/secrets.ts';
import { loadReferences } from '../events/references.ts';
import type { KeptEvent, References } from '../events/references.ts';
import { erasedContext } from './signature.ts';

/**
 * What is sent, rendered from the store as it is now: an edited message shows its new version, a deleted one its tombstone,
 * an erased user its alias. Only the id, type and time of the event are fixed.
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

/** Bodies by delivery; one that is missing can no longer be rendered. */
export async function render(
  db: Queryable,
  vault: Vault,
  rows: readonly Renderable[],
): Promise<Map<number, string>> {
  const references = await loadReferences(db, rows);
  const bodies = new Map<number, string>();
  for (const row of rows) {
    const data = row.type === testEvent ? { webhookId: row.endpointId } : dataOf(row, references, vault);
    if (data === null) continue;
    bodies.set(
      row.no,
      JSON.stringify({ id: row.eventId, type: row.type, createdAt: row.eventAt, env: row.envId, data }),
    );
  }
  return bodies;
}

type Data = (event: never) => object;
/** How each event's `data` is made, by the name that webhooks know it by. */
const dataByName = new Map<string, Data>([
  ...Object.values(catalogue).flatMap(({ webhook }): [WebhookEventName, Data][] =>
    webhook ? [[webhook.name, webhook.data]] : [],
  ),
  ...Object.entries(webhookOnly).map(([name, { data }]): [string, Data] => [name, data]),
]);

/** null: something that the event shows is gone. */
function dataOf(row: Renderable, references: References, vault: Vault): object | null {
  const cid = references.conversationId(row);
  const message = references.message(row);
  if ((row.conv !== null && cid === undefined) || (row.message !== null && !message)) return null;
  const event = {
    cid,
    seq: row.seq,
    actorId: references.actorId(row),
    message,
    users: references.users(row),
    conversation: references.conversation(row),
    data: row.data === null ? {} : (JSON.parse(row.data) as unknown),
    secret: row.sealed && vault.open(row.sealed, erasedContext(row.env)).toString(),
  };
  // The type says which of these its row has.
  return dataByName.get(row.type)!(event as never);
}
