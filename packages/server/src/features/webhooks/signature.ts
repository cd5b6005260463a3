import { createHmac } from 'node:crypto';
import type { Ids } from '../../platform/clock.ts';
import type { Vault } from '../../platform/secrets.ts';

export const secretPrefix = 'whsec_';
const secretBytes = 32;

/** A new secret: as it is stored, and as its owner sees it this once. */
export function makeSecret(
  { ids, vault }: { ids: Ids; vault: Vault },
  context: string,
): { sealed: Buffer; shown: string } {
  const secret = Buffer.from(ids.random(secretBytes));
  return { sealed: vault.seal(secret, context), shown: secretPrefix + secret.toString('base64') };
}

/** webhooks#signature: one signature per live secret, separated by a space. */
function sign(secrets: readonly Buffer[], id: string, timestamp: number, body: string): string {
  return secrets
    .map((secret) => {
      const mac = createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body);
      return `v1,${mac.digest('base64')}`;
    })
    .join(' ');
}

/** The headers of a signed request. */
export const signedHeaders = (
  secrets: readonly Buffer[],
  request: { userAgent: string; requestId: string; id: string; now: number; body: string },
): Record<string, string> => {
  const timestamp = Math.floor(request.now / 1000);
  return {
    'content-type': 'application/json',
    'user-agent': request.userAgent,
    'request-id': request.requestId,
    'webhook-id': request.id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': sign(secrets, request.id, timestamp, request.body),
  };
};

/** The context that a sealed secret is bound to. */
export const secretContext = (endpointId: string): string => `webhook ${endpointId}`;
/** The context that the sealed id of an erased user is bound to, until the event that names it is deleted. */
export const erasedContext = (env: number): string => `erased user ${env}`;
