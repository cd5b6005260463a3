import { tell } from '../../log/record.ts';
import { enqueue } from '../../platform/jobs/jobs.ts';
import type { Job } from '../../platform/jobs/jobs.ts';
import { listeners } from '../../platform/jobs/outbox.ts';
import type { Consumer } from '../../platform/jobs/outbox.ts';
import type { Queryable, Tx } from '../../platform/postgres/db.ts';
import { defaultSettings, pushProviders } from '@parley/protocol';
import type { PushProviderName } from '../../platform/push/port.ts';
import type { PresenceRegistry } from '../../platform/presence/port.ts';

/**
 * Who is told of a message. The dispatcher notes a job for each message that may be pushed; the job finds the members to tell,
 * and makes one job for each of their devices, or one notification.needed.
 */

export const planQueue = { name: 'push_plan', width: 50 };
/** A lane is one provider of one environment: trouble there delays no other. */
export const sendQueue = { name: 'push', width: 20 };
const lanes = 8;
export const laneOf = (env: number, provider: PushProviderName): number =>
  env * lanes + pushProviders.indexOf(provider);
export const envOfLane = (key: number): number => Math.floor(key / lanes);

export const pushMode = (alias: string): string =>
  `coalesce(${alias}.settings ->> 'pushMode', '${defaultSettings.pushMode}')`;
/**
 * A message `s` of conversation `c` to its member `m`, who is user `r`: both still there, not muted, not by it, not read yet, and not so
 * old that it is no news (the workers may have stood still).
 */
export const stillWanted = `s.deleted_at IS NULL AND s.created_at > now() - interval '24 hours' AND c.deleted_at IS NULL
  AND NOT m.muted AND m.usr IS DISTINCT FROM s.sender AND m.last_read_seq < s.seq AND r.deactivated_at IS NULL`;

export type Presence = Pick<PresenceRegistry, 'connected'>;

export interface PlanData {
  conv: number;
  seq: number;
}
export interface SendData extends PlanData {
  usr: number;
}

export const dispatchToPush: Consumer = async (tx, rows) => {
  const messages = rows.filter((r) => r.type === 'message.created');
  if (messages.length === 0) return;
  const wanted = await tx.query<{ env: number } & PlanData>(
    `SELECT o.env, o.conv, o.seq FROM outbox o JOIN environments e ON e.no = o.env AND e.status = 'active'
     WHERE o.no = ANY($1) AND CASE ${pushMode('e')}
       WHEN 'providers' THEN e.listeners & ${listeners.push} <> 0 AND EXISTS (
         SELECT 1 FROM members m JOIN push_devices d ON d.env = m.env AND d.usr = m.usr
         WHERE m.env = o.env AND m.conv = o.conv AND NOT m.muted AND m.usr IS DISTINCT FROM o.actor)
       WHEN 'webhook' THEN EXISTS (
         SELECT 1 FROM webhook_endpoints w
         WHERE w.env = o.env AND w.status = 'enabled' AND 'notification.needed' = ANY(w.events))
       ELSE false END
     ORDER BY o.no`,
    [messages.map((r) => r.no)],
  );
  await enqueue(
    tx,
    planQueue,
    wanted.map(({ env, conv, seq }) => ({ key: env, data: { conv, seq } })),
  );
};

export interface Planned extends PlanData {
  runAt: null;
  env: number;
  /** Of notification.needed. */
  recipients: number[];
  devices: { no: number; usr: number; provider: PushProviderName }[];
}

interface Recipient {
  job: number;
  env: number;
  mode: 'providers' | 'webhook' | 'off';
  usr: number;
  devices: { no: number; provider: PushProviderName }[] | null;
}

const askAtOnce = 1_000;

/** Which of the users have a live socket. A user's number is of one environment only. */
export async function connectedUsers(
  presence: Presence,
  users: readonly { env: number; usr: number }[],
): Promise<Set<number>> {
  const refs = [...new Map(users.map(({ env, usr }) => [usr, { env, user: usr }])).values()];
  const online = new Set<number>();
  for (let i = 0; i < refs.length; i += askAtOnce) {
    const asked = refs.slice(i, i + askAtOnce);
    const connected = await presence.connected(asked);
    asked.forEach((ref, j) => connected[j] && online.add(ref.user));
  }
  return online;
}

/** The members to tell, of all the jobs at once: those without a live socket. */
export async function plan(db: Queryable, presence: Presence, jobs: readonly Job[]): Promise<Planned[]> {
  const data = jobs.map((j) => j.data as PlanData);
  const found = await db.query<Recipient>(
    `SELECT u.ord::int - 1 AS job, u.env, ${pushMode('e')} AS mode, m.usr, d.devices
     FROM unnest($1::int[], $2::bigint[], $3::bigint[]) WITH ORDINALITY u(env, conv, seq, ord)
     JOIN environments e ON e.no = u.env AND e.status = 'active'
     JOIN messages s ON s.env = u.env AND s.conv = u.conv AND s.seq = u.seq
     JOIN conversations c ON c.env = u.env AND c.no = u.conv
     JOIN members m ON m.env = u.env AND m.conv = u.conv
     JOIN users r ON r.env = m.env AND r.no = m.usr
     LEFT JOIN LATERAL (
       SELECT json_agg(json_build_object('no', d.no, 'provider', d.provider)) AS devices
       FROM push_devices d JOIN push_credentials k ON k.env = d.env AND k.provider = d.provider
       WHERE d.env = m.env AND d.usr = m.usr AND ${pushMode('e')} = 'providers'
     ) d ON true
     WHERE ${stillWanted} AND CASE ${pushMode('e')} WHEN 'providers' THEN d.devices IS NOT NULL WHEN 'webhook' THEN true ELSE false END
     ORDER BY u.ord, m.usr`,
    [jobs.map((j) => j.key), data.map((d) => d.conv), data.map((d) => d.seq)],
  );
  const online = await connectedUsers(presence, found);
  const planned = jobs.map((job, i): Planned => ({
    runAt: null,
    env: job.key,
    ...data[i]!,
    recipients: [],
    devices: [],
  }));
  for (const { job, mode, usr, devices } of found) {
    if (online.has(usr)) continue;
    const one = planned[job]!;
    if (mode === 'webhook') one.recipients.push(usr);
    for (const device of devices ?? []) one.devices.push({ ...device, usr });
  }
  return planned;
}

/** In the transaction that ends the jobs of the plan. */
export async function settlePlan(
  log: { committed(): void },
  tx: Tx,
  planned: readonly Planned[],
): Promise<void> {
  await enqueue(
    tx,
    sendQueue,
    planned.flatMap(({ env, conv, seq, devices }) =>
      devices.map(({ no, usr, provider }) => ({
        key: laneOf(env, provider),
        ref: no,
        data: { conv, seq, usr } satisfies SendData,
      })),
    ),
  );
  for (const { env, conv, seq, recipients } of planned)
    if (recipients.length > 0)
      await tell(log, tx, env, 'notification.needed', { conv, message: seq, users: recipients });
}
