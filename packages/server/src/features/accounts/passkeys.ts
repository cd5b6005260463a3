import { ApiError } from '@parley/protocol';
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import { invalid } from '../../platform/api-errors.ts';
import type { Queryable, Tx } from '../../platform/postgres/db.ts';
import type { AccountContext } from '../context.ts';
import type { Account } from './sql/accounts.ts';
import { challengeMs, isChallenge, makeChallenge, useChallenge } from './challenges.ts';
import type { AccountServices } from './account-services.ts';
import { findPasskey, insertPasskey, markPasskeyUsed, maxPasskeys, storedPasskeys } from './sql/passkeys.ts';
import type { Passkey } from './sql/passkeys.ts';

/**
 * Passkeys (WebAuthn). A passkey proves possession of the device and, by fingerprint or PIN, the person, so it signs
 * in without a password. An account that has one also needs a code besides its password. We ask for no attestation,
 * because the make of a key does not matter to us.
 */

interface RelyingParty {
  id: string;
  origin: string;
}

/**
 * The site that passkeys belong to, and to no other a browser offers them: CHAT_ORIGIN or, if it is not set, the host that
 * the browser names.
 */
export function relyingParty({ http, services }: AccountContext): RelyingParty {
  const origin = services.accounts.origin ?? `${http.secure ? 'https' : 'http'}://${http.host}`;
  const url = URL.parse(origin);
  if (!url) throw new ApiError('invalid_request', { message: 'The request names no host.' });
  return { id: url.hostname, origin: url.origin };
}

/** Loaded on first use: it takes 0.1 s to load, and most processes never need it. */
const webauthn = () => import('@simplewebauthn/server');

const purposeOf = (account: Account): string => `passkey of account ${account.no}`;
const signInPurpose = 'sign-in';

/** Returns the options for `navigator.credentials.create`. */
export async function registrationOptions(
  db: Queryable,
  services: AccountServices,
  account: Account,
  party: RelyingParty,
): Promise<object> {
  const known = await storedPasskeys(db, account.no);
  if (known.length >= maxPasskeys)
    throw new ApiError('invalid_request', { message: `An account has at most ${maxPasskeys} passkeys.` });
  const { generateRegistrationOptions } = await webauthn();
  return generateRegistrationOptions({
    rpName: 'Parley',
    rpID: party.id,
    userName: account.email,
    userDisplayName: account.name || account.email,
    userID: new Uint8Array(Buffer.from(account.id)),
    challenge: makeChallenge(services, purposeOf(account)),
    timeout: challengeMs,
    attestationType: 'none',
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    excludeCredentials: known.map(({ credential, transports }) => ({
      id: credential.toString('base64url'),
      transports,
    })),
  });
}

const refused = () => invalid('response', 'The passkey could not be verified.');

/** The account must be locked. */
export async function addPasskey(
  tx: Tx,
  services: AccountServices,
  account: Account,
  party: RelyingParty,
  fields: { name: string; response: object },
): Promise<Passkey> {
  const response = fields.response as RegistrationResponseJSON;
  await refuseCertificates(response);
  const { verifyRegistrationResponse } = await webauthn();
  let challenge = '';
  const verified = await verifyRegistrationResponse({
    response,
    expectedChallenge: (given) => isChallenge(services, purposeOf(account), (challenge = given)),
    expectedOrigin: party.origin,
    expectedRPID: party.id,
    requireUserVerification: true,
  }).catch(() => null);
  if (!verified?.verified) throw refused();
  const { credential } = verified.registrationInfo;
  await useChallenge(tx, challenge);
  // Another request may have added a passkey since the options were made.
  if ((await storedPasskeys(tx, account.no)).length >= maxPasskeys) throw refused();
  const passkey = await insertPasskey(tx, {
    id: services.ids.make('passkey'),
    account: account.no,
    credential: Buffer.from(credential.id, 'base64url'),
    publicKey: Buffer.from(credential.publicKey),
    signCount: credential.counter,
    transports: knownTransports(credential.transports),
    name: fields.name,
    createdAt: new Date(services.clock.now()),
  });
  if (!passkey) throw refused();
  return passkey;
}

/**
 * Refuses an attestation with certificates, because verifying one would fetch the revocation lists whose addresses it
 * names. We ask for no attestation, so browsers send none.
 */
async function refuseCertificates(response: RegistrationResponseJSON): Promise<void> {
  try {
    const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers');
    const bytes = new Uint8Array(Buffer.from(response.response.attestationObject, 'base64url'));
    const statement = decodeAttestationObject(bytes);
    const format = statement.get('fmt');
    if (format === 'none') return;
    if (format === 'packed' && statement.get('attStmt').get('x5c') === undefined) return;
  } catch {
    // Unreadable input is refused like one with certificates.
  }
  throw refused();
}

const transportNames = ['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb'];
const knownTransports = (given: readonly string[] = []): string[] =>
  transportNames.filter((name) => given.includes(name));

/** Returns the options for `navigator.credentials.get`; the browser then offers the passkeys that it holds for our site. */
export async function signInOptions(services: AccountServices, party: RelyingParty): Promise<object> {
  const { generateAuthenticationOptions } = await webauthn();
  return generateAuthenticationOptions({
    rpID: party.id,
    challenge: makeChallenge(services, signInPurpose),
    timeout: challengeMs,
    userVerification: 'required',
    allowCredentials: [],
  });
}

/** Returns the account that the passkey signs in, and uses the challenge up. */
export async function usePasskey(
  tx: Tx,
  services: AccountServices,
  party: RelyingParty,
  given: object,
): Promise<number> {
  const response = given as AuthenticationResponseJSON;
  const passkey = await findPasskey(
    tx,
    Buffer.from(typeof response.id === 'string' ? response.id : '', 'base64url'),
  );
  if (!passkey) throw new ApiError('invalid_credentials');
  // The browser chose the account, so it must say which, and it must be the owner's (WebAuthn 7.2, step 6).
  const handle: unknown = (response.response as { userHandle?: unknown } | undefined)?.userHandle;
  if (typeof handle !== 'string' || Buffer.from(handle, 'base64url').toString() !== passkey.owner)
    throw new ApiError('invalid_credentials');
  const { verifyAuthenticationResponse } = await webauthn();
  let challenge = '';
  const verified = await verifyAuthenticationResponse({
    response,
    expectedChallenge: (value) => isChallenge(services, signInPurpose, (challenge = value)),
    expectedOrigin: party.origin,
    expectedRPID: party.id,
    requireUserVerification: true,
    credential: {
      id: passkey.credential.toString('base64url'),
      publicKey: new Uint8Array(passkey.publicKey),
      counter: passkey.signCount,
    },
  }).catch(() => null);
  if (!verified?.verified) throw new ApiError('invalid_credentials');
  await useChallenge(tx, challenge);
  const { newCounter } = verified.authenticationInfo;
  if (!(await markPasskeyUsed(tx, passkey.id, newCounter, new Date(services.clock.now()))))
    throw new ApiError('invalid_credentials');
  return passkey.account;
}
