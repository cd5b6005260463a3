import { createHmac } from 'node:crypto';
import type { CallMedia } from '@parley/protocol';

/** Ephemeral credentials of a TURN server (coturn's REST scheme: `use-auth-secret`), bound to a user and a call. */

export interface TurnSettings {
  urls: readonly string[];
  secret: string | undefined;
}

const validSeconds = 3_600;

export function iceServers(
  { urls, secret }: TurnSettings,
  who: { user: number; callId: string },
  nowMs: number,
): CallMedia['iceServers'] {
  if (urls.length === 0) return [];
  const own = urls.filter((url) => url.startsWith('stun'));
  const relays = urls.filter((url) => !url.startsWith('stun'));
  const servers: CallMedia['iceServers'] = own.length > 0 ? [{ urls: own }] : [];
  if (relays.length === 0 || secret === undefined) return servers;
  const username = `${Math.floor(nowMs / 1_000) + validSeconds}:${who.user}:${who.callId}`;
  const credential = createHmac('sha1', secret).update(username).digest('base64');
  return [...servers, { urls: relays, username, credential }];
}
