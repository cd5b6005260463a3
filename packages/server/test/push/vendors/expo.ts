import type { IncomingMessage } from 'node:http';
import { parsePushCredentials } from '../../../src/platform/push/credentials.ts';
import { hasOnly, record, rule, serve, troubleAnswer, type Answer, type Vendor } from './vendor.ts';

const fields = [
  'to',
  'title',
  'body',
  'data',
  'badge',
  'sound',
  'ttl',
  'priority',
  'collapseId',
  'tag',
  'categoryId',
  '_contentAvailable',
];

export interface ExpoVendor extends Vendor {
  /** What getReceipts answers, by id. */
  receipts: Record<string, unknown>;
  /** How many ids each call of getReceipts had. */
  receiptCalls: number[];
  /** The ticket of the next send. */
  nextTickets: unknown[];
}

export async function startExpo(): Promise<ExpoVendor> {
  const server = await serve(handle, ({ status, code, message }) => {
    if (code !== 'UNAUTHORIZED') vendor.violations.push(message);
    return { status, body: { errors: [{ code, message }] } };
  });

  function handle(request: IncomingMessage, body: Buffer): Answer {
    rule(request.method === 'POST', 405, 'METHOD_NOT_ALLOWED', 'method');
    rule(request.headers['content-type'] === 'application/json', 400, 'VALIDATION_ERROR', 'content-type');
    // "Additional security": with it switched on, requests need a valid access token.
    const bearer = request.headers.authorization ?? '';
    rule(bearer === 'Bearer expo-access-token', 401, 'UNAUTHORIZED', 'access token');
    vendor.proofs.add(bearer);
    const trouble = vendor.trouble.shift();
    if (trouble !== undefined) return troubleAnswer(trouble, { errors: [{ code: 'TOO_MANY_REQUESTS' }] });
    const input = record(JSON.parse(body.toString()));
    if (request.url === '/--/api/v2/push/send') return send(input);
    rule(request.url === '/--/api/v2/push/getReceipts', 404, 'NOT_FOUND', 'path');
    const ids = input.ids;
    // "up to 1000 ids"
    rule(Array.isArray(ids) && ids.length > 0 && ids.length <= 1000, 400, 'VALIDATION_ERROR', 'ids');
    vendor.receiptCalls.push(ids.length);
    return {
      status: 200,
      body: { data: Object.fromEntries(Object.entries(vendor.receipts).filter(([id]) => ids.includes(id))) },
    };
  }

  function send(message: Record<string, unknown>): Answer {
    const bad = (holds: unknown, text: string): void => rule(holds, 400, 'VALIDATION_ERROR', text);
    // "Message request format"; names that are not in it are refused.
    bad(hasOnly(message, fields), 'unknown field');
    bad(typeof message.to === 'string' && /^Expo(nent)?PushToken\[.+\]$/.test(message.to), 'to');
    bad(['default', 'normal', 'high'].includes(String(message.priority)), 'priority');
    bad(Number.isInteger(message.ttl) && Number(message.ttl) >= 0, 'ttl');
    bad(message.badge === undefined || Number.isInteger(message.badge), 'badge');
    bad(typeof message.data === 'object', 'data is an object');
    const ticket = vendor.nextTickets.shift();
    if (ticket !== undefined) return { status: 200, body: { data: ticket } };
    // Individual errors come with status 200, in the ticket.
    const error = (code: string): Answer => ({
      status: 200,
      body: { data: { status: 'error', message: code, details: { error: code } } },
    });
    const { title, body, data } = message;
    if (Buffer.byteLength(JSON.stringify({ title, body, data })) > 4096) return error('MessageTooBig');
    if (message.to === vendor.deadToken) return error('DeviceNotRegistered');
    vendor.delivered.push({
      token: message.to as string,
      title: title as string | undefined,
      body: body as string | undefined,
      badge: message.badge as number | undefined,
      collapse: String(message.collapseId),
      data: data as Record<string, string>,
      priority: String(message.priority),
      ttlSeconds: Number(message.ttl),
      // Expo makes an alert of whatever has a title or a body.
      ...(message.categoryId === undefined
        ? {}
        : {
            apple: {
              type: 'alert',
              priority: message.priority === 'high' ? '10' : '5',
              category: message.categoryId,
              alert: { title, body },
            },
          }),
    });
    return { status: 200, body: { data: { status: 'ok', id: `receipt-${vendor.delivered.length}` } } };
  }

  const vendor: ExpoVendor = {
    credentials: parsePushCredentials('expo', { accessToken: 'expo-access-token' }),
    wrongCredentials: parsePushCredentials('expo', { accessToken: 'another-token' }),
    endpoints: { expo: server.origin },
    goodToken: 'ExponentPushToken[good-device]',
    deadToken: 'ExpoPushToken[gone-device]',
    maxCollapse: 64,
    delivered: [],
    violations: [],
    proofs: new Set(),
    proofLifeMs: undefined,
    trouble: [],
    receipts: {},
    receiptCalls: [],
    nextTickets: [],
    drop: server.drop,
    close: server.close,
  };
  return vendor;
}
