import { Type } from '../type.ts';
import type { Static } from 'typebox';
import { nullable, open, Timestamp } from './common.ts';

/** push#devices: the providers. */
export const pushProviders = ['fcm', 'apns', 'expo', 'webpush'] as const;
export const PushProviderName = Type.Unsafe<(typeof pushProviders)[number]>({
  type: 'string',
  enum: [...pushProviders],
});

export const PushDevice = open(
  { provider: PushProviderName, token: Type.String(), createdAt: Timestamp },
  'PushDevice',
);
export type PushDevice = Static<typeof PushDevice>;

/** That credentials exist, and since when; never their content. */
export const PushCredentialsView = open(
  { provider: PushProviderName, setAt: Timestamp },
  'PushCredentialsView',
);
export type PushCredentialsView = Static<typeof PushCredentialsView>;

/** A device as operators of the environment see it: with enough of the token to recognise it, too little to use it. */
export const PushDeviceView = open(
  {
    id: Type.String({ pattern: '^dev_' }),
    provider: PushProviderName,
    tokenEnd: Type.String({ description: 'The last characters of the token' }),
    createdAt: Timestamp,
    registeredAt: Timestamp,
  },
  'PushDeviceView',
);
export type PushDeviceView = Static<typeof PushDeviceView>;

export const pushTestResults = ['sent', 'dead', 'rejected', 'retry'] as const;
export const PushTestResult = open(
  {
    deviceId: Type.String({ pattern: '^dev_' }),
    provider: PushProviderName,
    result: Type.Unsafe<(typeof pushTestResults)[number]>({ type: 'string', enum: [...pushTestResults] }),
    reason: nullable(Type.String({ description: 'As the provider gave it' })),
  },
  'PushTestResult',
);
export type PushTestResult = Static<typeof PushTestResult>;
