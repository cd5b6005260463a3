import { createApnsProvider } from './apns.ts';
import type { PushCredentials } from './credentials.ts';
import { createExpoProvider } from './expo.ts';
import { createFcmProvider } from './fcm.ts';
import type { PushDependencies, PushEndpoints, PushProvider } from './port.ts';
import { createWebpushProvider } from './webpush.ts';

export function createPushProvider(
  credentials: PushCredentials,
  dependencies: PushDependencies,
  endpoints: PushEndpoints = {},
): PushProvider {
  switch (credentials.provider) {
    case 'fcm':
      return createFcmProvider(credentials, dependencies, endpoints);
    case 'apns':
      return createApnsProvider(credentials, dependencies, { origin: endpoints.apns });
    case 'expo':
      return createExpoProvider(credentials, dependencies, endpoints.expo);
    case 'webpush':
      return createWebpushProvider(credentials, dependencies);
  }
}
