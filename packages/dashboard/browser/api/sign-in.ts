import type { Session } from './session.ts';
import { call } from './call.ts';

/** Ways to prove an identity without typing. */

export const passkeysWork = (): boolean => 'PublicKeyCredential' in globalThis;

/** null: the browser gave none (cancelled, timed out, no passkey for this site). */
async function ask<T>(make: () => Promise<T>): Promise<T | null> {
  try {
    return await make();
  } catch (error) {
    if (error instanceof DOMException) return null;
    throw error;
  }
}

export async function signInWithPasskey(): Promise<Session | null> {
  const options = await call('session.passkeyOptions', {}, null);
  const credential = await ask(() =>
    navigator.credentials.get({
      publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(
        options as PublicKeyCredentialRequestOptionsJSON,
      ),
    }),
  );
  if (!credential) return null;
  return call(
    'session.createWithPasskey',
    { response: (credential as PublicKeyCredential).toJSON() as object },
    null,
  );
}

/** @param options of `account.passkeyOptions`. */
export const createPasskey = async (options: object): Promise<object | null> =>
  ask(async () => {
    const credential = await navigator.credentials.create({
      publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(
        options as PublicKeyCredentialCreationOptionsJSON,
      ),
    });
    return (credential as PublicKeyCredential).toJSON() as object;
  });
