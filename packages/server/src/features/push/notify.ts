import { pushProviders } from '@parley/protocol';
import { enqueue } from '../../platform/jobs/jobs.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { PushNotification, PushProviderName } from '../../platform/push/port.ts';

/**
 * Pushes to users: one job per device, written in the transaction of its cause. A job holds either a finished
 * notification (a ringing call) or refers to a message, which is read and checked again when the push is sent.
 */

/** A lane is one provider of one environment, so that trouble there delays no other. */
export const sendQueue = { name: 'push', width: 20 };
const lanes = 8;
export const laneOf = (env: number, provider: PushProviderName): number =>
  env * lanes + pushProviders.indexOf(provider);
export const envOfLane = (key: number): number => Math.floor(key / lanes);

export const pushMode = (alias: string): string => `coalesce(${alias}.settings ->> 'pushMode', 'providers')`;

/** A notification without its badge, which differs per user. Without title and body it is data for the app alone. */
export type GivenNotification = Omit<PushNotification, 'badge'>;
export interface MessageRef {
  conv: number;
  seq: number;
}
/** What a job pushes. A finished notification is dropped at `expiresAt`, when its `ttlSeconds` are over. */
export type Pushed = MessageRef | { notification: GivenNotification; expiresAt: string };
export type SendData = { usr: number } & Pushed;

export const given = (notification: GivenNotification, now: number): Pushed => ({
  notification,
  expiresAt: new Date(now + notification.ttlSeconds * 1_000).toISOString(),
});

export interface Notice {
  env: number;
  users: readonly number[];
  pushed: Pushed;
}

/**
 * Queues pushes to all devices of the users, and returns how many. The caller leaves out users who need none because
 * they have a socket.
 */
export async function notify(tx: Queryable, notices: readonly Notice[]): Promise<number> {
  const asked = notices.flatMap(({ env, users }, notice) => users.map((usr) => ({ env, usr, notice })));
  if (asked.length === 0) return 0;
  const devices = await tx.query<{
    notice: number;
    env: number;
    usr: number;
    no: number;
    provider: PushProviderName;
  }>(
    `SELECT u.notice, d.env, d.usr, d.no, d.provider
     FROM unnest($1::int[], $2::bigint[], $3::int[]) u(env, usr, notice)
     JOIN environments e ON e.no = u.env AND ${pushMode('e')} = 'providers'
     JOIN push_devices d ON d.env = u.env AND d.usr = u.usr
     JOIN push_credentials k ON k.env = d.env AND k.provider = d.provider
     ORDER BY u.notice, d.usr, d.no`,
    [asked.map((a) => a.env), asked.map((a) => a.usr), asked.map((a) => a.notice)],
  );
  await enqueue(
    tx,
    sendQueue,
    devices.map(({ notice, env, usr, no, provider }) => ({
      key: laneOf(env, provider),
      ref: no,
      data: { usr, ...notices[notice]!.pushed } satisfies SendData,
    })),
  );
  return devices.length;
}
