import type { ExpoCredentials } from './credentials.ts';
import { asObject, codeText, jsonObject, post, statusOutcome } from './http.ts';
import { categoryOf, collapseId, fitNotification, isDataOnly } from './payload.ts';
import type { PushDependencies, PushOutcome, PushProvider } from './port.ts';

const tokenPattern = /^(Expo(nent)?PushToken\[[\w.:-]{1,200}\]|[a-z\d]{8}(-[a-z\d]{4}){3}-[a-z\d]{12})$/i;
const maxReceiptIds = 1000;
// Expo's limit is the 4,096 bytes of Apple and Google, which include its own keys.
const maxPayloadBytes = 3584;

/** Expo's push service: https://docs.expo.dev/push-notifications/sending-notifications/ */
export function createExpoProvider(
  credentials: ExpoCredentials,
  { request, now }: PushDependencies,
  origin = 'https://exp.host',
): PushProvider {
  const headers: Record<string, string> = { 'content-type': 'application/json', accept: 'application/json' };
  if (credentials.accessToken !== undefined) headers.authorization = `Bearer ${credentials.accessToken}`;

  async function call(path: string, body: string): Promise<{ data: unknown } | { failed: PushOutcome }> {
    const result = await post(request, `${origin}/--/api/v2/push/${path}`, headers, body);
    if ('failed' in result) return result;
    const answer = jsonObject(result.response.body);
    const errors = Array.isArray(answer.errors) ? answer.errors : [];
    const reason = codeText(asObject(errors[0]).code);
    if (result.response.status !== 200) return { failed: statusOutcome(result.response, now(), reason) };
    if (errors.length > 0) return { failed: { kind: 'rejected', reason: reason || 'expo_error' } };
    return { data: answer.data };
  }

  return {
    async send(token, notification) {
      if (!tokenPattern.test(token)) return { kind: 'dead', reason: 'not_an_expo_token' };
      const dataOnly = isDataOnly(notification);
      const content = fitNotification(notification, maxPayloadBytes, (title, body) =>
        JSON.stringify({
          ...(dataOnly ? { _contentAvailable: true } : { title, body, sound: 'default' }),
          data: notification.data,
        }),
      );
      if (content === undefined) return { kind: 'rejected', reason: 'payload_too_large' };
      const message = {
        to: token,
        ...asObject(JSON.parse(content)),
        ...(dataOnly ? {} : { badge: notification.badge, tag: notification.collapseKey }),
        ...(notification.call ? { categoryId: categoryOf(notification) } : {}),
        collapseId: collapseId(notification.collapseKey, 64),
        priority: notification.priority,
        ttl: Math.max(Math.floor(notification.ttlSeconds), 0),
      };
      const answer = await call('send', JSON.stringify(message));
      if ('failed' in answer) return answer.failed;
      const ticket = asObject(Array.isArray(answer.data) ? answer.data[0] : answer.data);
      if (ticket.status === 'ok' && typeof ticket.id === 'string')
        return { kind: 'sent', receiptId: ticket.id };
      return ticketOutcome(ticket);
    },
    async receipts(receiptIds) {
      const outcomes = new Map<string, PushOutcome>();
      const ids = receiptIds.slice(0, maxReceiptIds);
      const answer = await call('getReceipts', JSON.stringify({ ids }));
      if ('failed' in answer) return outcomes;
      const receipts = asObject(answer.data);
      for (const id of ids) {
        if (Object.hasOwn(receipts, id)) outcomes.set(id, ticketOutcome(asObject(receipts[id])));
      }
      return outcomes;
    },
    close() {},
  };
}

function ticketOutcome(ticket: Record<string, unknown>): PushOutcome {
  if (ticket.status === 'ok') return { kind: 'sent' };
  const code = codeText(asObject(ticket.details).error);
  if (code === 'DeviceNotRegistered') return { kind: 'dead', reason: code };
  if (['MessageTooBig', 'InvalidCredentials', 'MismatchSenderId', 'DeveloperError'].includes(code)) {
    return { kind: 'rejected', reason: code };
  }
  return { kind: 'retry', reason: code || 'expo_answer_unreadable' };
}
