import { createHash } from 'node:crypto';
import type { PushDevice } from '@parley/protocol';
import { consumers } from '../../log/sql/consumers.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { anyRow, arraysOf, firstRow, firstValue } from '../../platform/postgres/rows.ts';
import type { PushProviderName } from '../../platform/push/port.ts';

const hash = (token: string): Buffer => createHash('sha256').update(token).digest();

/**
 * Saves a device. `known` is true if this user had it already. Returns undefined if the user no longer exists; saving
 * and erasing wait for each other.
 */
export const saveDevice = (
  db: Queryable,
  env: number,
  user: number,
  provider: PushProviderName,
  token: string,
  /** undefined: the one it has stays. */
  voipToken?: string | null,
): Promise<(PushDevice & { known: boolean }) | undefined> =>
  firstRow(
    db,
    `INSERT INTO push_devices AS d (env, usr, provider, token, token_hash, voip_token, created_at, registered_at)
     SELECT u.env, u.no, $3, $4, $5, $6, t.at, t.at
     FROM users u, (SELECT clock_timestamp()::timestamptz(3) AS at) t
     WHERE u.env = $1 AND u.no = $2 AND u.erased_at IS NULL FOR KEY SHARE OF u
     ON CONFLICT (env, token_hash) DO UPDATE SET usr = excluded.usr, provider = excluded.provider,
       voip_token = CASE WHEN $7 AND d.usr = excluded.usr AND d.provider = excluded.provider THEN d.voip_token ELSE excluded.voip_token END,
       created_at = CASE WHEN d.usr = excluded.usr THEN d.created_at ELSE excluded.created_at END,
       registered_at = CASE WHEN d.usr = excluded.usr
         THEN greatest(excluded.registered_at, d.created_at + interval '1 millisecond') ELSE excluded.registered_at END
     RETURNING d.provider, d.token, d.created_at AS "createdAt", d.registered_at > d.created_at AS known`,
    [env, user, provider, token, hash(token), voipToken ?? null, voipToken === undefined],
  );

/** Removes a user's devices beyond `most`, those not registered for the longest time first. */
export const dropOldDevices = (db: Queryable, env: number, user: number, most: number) =>
  db.query(
    `DELETE FROM push_devices WHERE env = $1 AND no IN (
       SELECT no FROM push_devices WHERE env = $1 AND usr = $2 ORDER BY registered_at DESC, no DESC OFFSET $3)`,
    [env, user, most],
  );

export const dropDevice = (db: Queryable, env: number, user: number, token: string): Promise<boolean> =>
  anyRow(db, 'DELETE FROM push_devices WHERE env = $1 AND token_hash = $2 AND usr = $3 RETURNING 1', [
    env,
    hash(token),
    user,
  ]);

export interface DeviceRow extends PushDevice {
  no: number;
  registeredAt: string;
}

/** A user's devices, the latest first. Their number is bounded. */
export const listDevices = (db: Queryable, env: number, user: number): Promise<DeviceRow[]> =>
  db.query<DeviceRow>(
    `SELECT no, provider, token, created_at AS "createdAt", registered_at AS "registeredAt" FROM push_devices
     WHERE env = $1 AND usr = $2 ORDER BY registered_at DESC, no DESC`,
    [env, user],
  );

/** Removes the device and returns its provider; undefined if there was none. */
export const dropDeviceByNo = (db: Queryable, env: number, user: number, no: number) =>
  firstValue<PushProviderName>(
    db,
    'DELETE FROM push_devices WHERE env = $1 AND usr = $2 AND no = $3 RETURNING provider',
    [env, user, no],
  );

export interface Attempt {
  env: number;
  conv: number;
  seq: number;
  usr: number;
  device: number;
  provider: PushProviderName;
  result: string;
  reason: string | null;
  at: number;
}

/** Stores what became of pushes of messages, for people who ask why a user did not get one. */
export async function noteAttempts(db: Queryable, attempts: readonly Attempt[]): Promise<void> {
  if (attempts.length === 0) return;
  await db.query(
    `INSERT INTO push_attempts (env, conv, seq, usr, device, provider, result, reason, at)
     SELECT * FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[],
       $9::timestamptz[])`,
    [
      ...arraysOf(attempts, 'env', 'conv', 'seq', 'usr', 'device', 'provider', 'result'),
      attempts.map((a) => a.reason?.slice(0, 200) ?? null),
      attempts.map((a) => new Date(a.at).toISOString()),
    ],
  );
}

export const dropDevicesOf = (db: Queryable, env: number, user: number) =>
  db.query('DELETE FROM push_devices WHERE env = $1 AND usr = $2', [env, user]);

export interface DeviceRef {
  env: number;
  no: number;
  registeredAt: string;
}

/** Removes devices whose provider calls their token dead, unless they were registered again meanwhile. */
export async function dropDead(db: Queryable, devices: readonly DeviceRef[]): Promise<void> {
  if (devices.length === 0) return;
  await db.query(
    `DELETE FROM push_devices d USING unnest($1::int[], $2::bigint[], $3::timestamptz[]) u(env, no, at)
     WHERE d.env = u.env AND d.no = u.no AND d.registered_at = u.at`,
    arraysOf(devices, 'env', 'no', 'registeredAt'),
  );
}

/** After a device was registered, messages of the environment may have to be recorded for push. */
export const listenForPush = (db: Queryable, env: number) =>
  db.query(
    `SELECT set_push_listener(no) FROM environments WHERE no = $1 AND listeners & ${consumers.push.bit} = 0`,
    [env],
  );

/**
 * Corrects the listener bit of environments from time to time, because removing a device does not check whether it
 * was the last.
 */
export const correctListeners = (db: Queryable) =>
  db.query(
    `SELECT set_push_listener(no) FROM environments
     WHERE (listeners & ${consumers.push.bit} <> 0) <> can_push(no, settings) LIMIT 1000`,
  );
