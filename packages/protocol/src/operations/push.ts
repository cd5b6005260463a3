import Type from 'typebox';
import { limits } from '../limits.ts';
import { PushDevice, PushProviderName } from '../schemas/push.ts';
import { operation } from './define.ts';

const tag = 'Push devices';
const callers = ['client'] as const;

const token = Type.String({
  minLength: 1,
  maxLength: limits.pushTokenCharacters,
  description: 'As the provider gave it to the device; of webpush the JSON of the PushSubscription',
});

export const pushRegister = operation('push.register', 'POST /v1/push/devices', {
  summary: 'Register this device for push; 200 if the user has it already. It leaves whoever had it before',
  tag,
  callers,
  body: { provider: PushProviderName, token },
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
