import { Type } from '../type.ts';
import { limits } from '../limits.ts';
import { IdParam, nullable, open, optional, UserId } from '../schemas/common.ts';
import { PushCredentialsView, PushDevice, PushProviderName, PushTestResult } from '../schemas/push.ts';
import { operation, table } from './define.ts';

const tag = 'Push devices';
const callers = ['client'] as const;

const token = Type.String({
  minLength: 1,
  maxLength: limits.pushTokenCharacters,
  description: 'As the provider gave it to the device; of webpush the JSON of the PushSubscription',
});

const voipToken = optional(
  nullable(
    Type.String({
      pattern: '^[0-9A-Fa-f]{16,200}$',
      examples: ['740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad'],
      description:
        'Only with apns: the device’s PushKit token in hex, to which incoming calls are pushed. null removes it; without the field it stays',
    }),
  ),
);

const credentials = {
  tag: 'Push credentials',
  callers: ['dashboard', 'operator'],
} as const;

export const pushOperations = table(
  operation('push.register', 'POST /v1/push/devices', {
    summary: 'Register this device for push; 200 if the user has it already. Any other user loses the device',
    text: 'Call it at every start of the app. A token belongs to the user who registered it last. `webpush`: the token is the JSON of the browser’s PushSubscription.',
    tag,
    callers,
    body: { provider: PushProviderName, token, voipToken },
    statuses: [201, 200],
    response: PushDevice,
  }),

  operation('push.unregister', 'DELETE /v1/push/devices/{token}', {
    summary: 'Stop pushes to a device of one’s own, on logout',
    text: 'Call it when the user signs out; otherwise the device keeps showing messages of a user who is no longer signed in.',
    tag,
    callers,
    params: { token },
    errors: ['not_found'],
  }),

  operation('push.listCredentials', 'GET /v1/push/credentials', {
    ...credentials,
    permission: 'environments.read',
    summary: 'For which providers the environment has credentials',
    text: 'Lists the providers that have credentials, never the credentials themselves.',
    response: open({ data: Type.Array(PushCredentialsView) }),
  }),

  operation('push.setCredentials', 'PUT /v1/push/credentials/{provider}', {
    ...credentials,
    permission: 'push.manage',
    summary: 'Set the credentials for a provider; nothing shows them again',
    text: 'The form of the credentials is checked; they are stored encrypted and replace the earlier ones.',
    params: { provider: PushProviderName },
    body: {
      credentials: Type.Unsafe<Record<string, unknown>>({
        type: 'object',
        description: 'As the provider issues them; docs/push.md lists the fields',
      }),
    },
    response: PushCredentialsView,
  }),

  operation('push.removeCredentials', 'DELETE /v1/push/credentials/{provider}', {
    ...credentials,
    permission: 'push.manage',
    summary: 'Forget the credentials for a provider',
    text: 'Devices stay registered; the service sends nothing over this provider until it has credentials again.',
    params: { provider: PushProviderName },
    errors: ['not_found'],
  }),

  operation('push.test', 'POST /v1/push/test', {
    tag: 'Push credentials',
    callers: ['dashboard'],
    permission: 'push.manage',
    summary:
      'Send a test notification to the devices of a user, or to one device, and return the answers of the providers',
    text: 'Shows in one step whether credentials, token and app match.',
    body: { userId: UserId, deviceId: optional(IdParam) },
    response: open({ data: Type.Array(PushTestResult) }),
    errors: ['not_found'],
  }),
);
