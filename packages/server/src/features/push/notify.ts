import { limits, pushProviders } from '@parley/protocol';
import { enqueue } from '../../platform/jobs/sql/jobs.ts';
import type { NewJob } from '../../platform/jobs/sql/jobs.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { PushProviderName } from '../../platform/push/port.ts';
import { hostLane, userLane } from './lanes.ts';
import { devicesOf } from './sql/planning.ts';
import type { MessageRef } from './sql/planning.ts';

/**
 * Pushes to users: one job per device, written in the transaction of its cause. A job refers to a message or a call,
 * which is read and checked again when the push is sent.
 */

/** A lane is one provider of one environment, so that trouble there delays no other. For web push see lanes.ts. */
export const sendQueue = { name: 'push', width: 20 };
/** Lanes of web push begin narrow, and grow with every prompt answer. */
export const narrowWidth = 2;
const lanes = 8;
const laneOf = (env: number, provider: PushProviderName): number =>
  env * lanes + pushProviders.indexOf(provider);

/** So many browsers of a user, those registered last, are pushed to in the lanes of their hosts. */
const browsersPerUser = 5;

/** A call is not pushed any more at `expiresAt`. */
export interface CallRef {
  call: number;
  type: 'incoming' | 'missed';
  expiresAt: string;
}
type Pushed = MessageRef | CallRef;
export type SendData = { env?: number; usr: number } & Pushed;

/** Jobs that the previous version wrote have the environment in their key alone. */
export const envOf = (key: number, { env }: SendData): number => env ?? Math.floor(key / lanes);

/** A missed call is worth knowing about for longer than it rang. */
const callMs = { incoming: limits.ringTimeoutMs, missed: 86_400_000 };

/** @param from when it began to ring, or was missed, in milliseconds. */
export const pushedCall = (call: number, type: CallRef['type'], from: number): CallRef => ({
  call,
  type,
  expiresAt: new Date(from + callMs[type]).toISOString(),
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
  const devices = await devicesOf(tx, asked);
  const wide: NewJob[] = [];
  const narrow: NewJob[] = [];
  for (const { notice, env, usr, no, provider, subscription, newer } of devices) {
    const data: SendData = { env, usr, ...notices[notice]!.pushed };
    if (subscription === null) wide.push({ key: laneOf(env, provider), ref: no, data });
    else {
      const key = newer < browsersPerUser ? hostLane(env, subscription) : userLane(env, usr);
      narrow.push({ key, ref: no, data });
    }
  }
  await enqueue(tx, sendQueue, wide);
  await enqueue(tx, { ...sendQueue, width: narrowWidth }, narrow);
  return devices.length;
}
