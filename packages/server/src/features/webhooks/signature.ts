import { createHmac } from 'node:crypto';

export const secretPrefix = 'whsec_';

/** webhooks#signature: one signature per live secret, separated by a space. */
export function sign(secrets: readonly Buffer[], id: string, timestamp: number, body: string): string {
  return secrets
    .map((secret) => {
      const mac = createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body);
      return `v1,${mac.digest('base64')}`;
    })
    .join(' ');
}

/** The context that a sealed secret is bound to. */
export const secretContext = (endpointId: string): string => `webhook ${endpointId}`;
/** The context that the sealed id of an erased user is bound to, until the event that names it is deleted. */
export const erasedContext = (env: number): string => `erased user ${env}`;
