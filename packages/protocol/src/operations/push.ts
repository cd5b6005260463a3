import Type from 'typebox';
import { limits } from '../limits.ts';
import { IdParam, nullable, open, optional, UserId } from '../schemas/common.ts';
import { PushCredentialsView, PushDevice, PushProviderName, PushTestResult } from '../schemas/push.ts';
import { operation } from './define.ts';

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

export const pushRegister = operation('push.register', 'POST /v1/push/devices', {
  summary: 'Register this device for push; 200 if the user has it already. It leaves whoever had it before',
  tag,
  callers,
  body: { provider: PushProviderName, token, voipToken },
  statuses: [201, 200],
  response: PushDevice,
});

export const pushUnregister = operation('push.unregister', 'DELETE /v1/push/devices/{token}', {
  summary: 'Stop pushes to a device of one’s own, on logout',
  tag,
  callers,
  params: { token },
  errors: ['not_found'],
});

const credentials = {
  tag: 'Push credentials',
  callers: ['dashboard', 'operator'],
} as const;

export const pushListCredentials = operation('push.listCredentials', 'GET /v1/push/credentials', {
  ...credentials,
  permission: 'environments.read',
  summary: 'For which providers the environment has credentials',
  response: open({ data: Type.Array(PushCredentialsView) }),
});

export const pushSetCredentials = operation('push.setCredentials', 'PUT /v1/push/credentials/{provider}', {
  ...credentials,
  permission: 'push.manage',
  summary: 'Set the credentials for a provider; nothing shows them again',
  params: { provider: PushProviderName },
  body: {
    credentials: Type.Unsafe<Record<string, unknown>>({
      type: 'object',
      description: 'As the provider issues them; docs/push.md lists the fields',
    }),
  },
  response: PushCredentialsView,
});

export const pushRemoveCredentials = operation(
  'push.removeCredentials',
  'DELETE /v1/push/credentials/{provider}',
  {
    ...credentials,
    permission: 'push.manage',
    summary: 'Forget the credentials for a provider',
    params: { provider: PushProviderName },
    errors: ['not_found'],
  },
);

export const pushTest = operation('push.test', 'POST /v1/push/test', {
  tag: 'Push credentials',
  callers: ['dashboard'],
  permission: 'push.manage',
  summary:
    'Send a test notification to the devices of a user, or to one of them, and say what the providers answered',
  body: { userId: UserId, deviceId: optional(IdParam) },
  response: open({ data: Type.Array(PushTestResult) }),
  errors: ['not_found'],
});
