import Type from 'typebox';
import type { Static } from 'typebox';
import { open, Timestamp } from './common.ts';

/** DECISIONS, placeholders: `<push_provider_1..3>`, and webpush. */
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

/** That there are some, and since when; never what they are. */
export const PushCredentialsView = open(
  { provider: PushProviderName, setAt: Timestamp },
  'PushCredentialsView',
);
export type PushCredentialsView = Static<typeof PushCredentialsView>;
