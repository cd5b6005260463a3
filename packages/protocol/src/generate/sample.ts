import { limits, realtime } from '../limits.ts';
import { isObject } from './schemas.ts';
import type { Json } from './schemas.ts';

export const sampleMessageId = 'msg_01hzy3v7k8m2q4r6t8w0x2z4b7';
const known: Record<string, Json> = {
  since: '2026-01-15T09:30:00.000Z',
  id: 'alice',
  re: '1',
  code: 'invalid_frame',
  message: 'The frame is not one of chat.v1.',
  removed: [],
  heartbeatMs: realtime.heartbeatMs,
  maxFrameBytes: limits.frameBytes,
  sendsPerSecond: realtime.sendsPerSecond,
  retryAfterMs: 1_000,
  reconnectAfterMs: 5_000,
  userId: 'alice',
  userIds: ['alice', 'bob'],
  senderId: 'alice',
  ownerId: 'alice',
  actorId: 'alice',
  pinnedBy: 'alice',
  members: ['alice', 'bob'],
  conversationId: 'conv_01hzy3v7k8m2q4r6t8w0x2z4a6',
  cid: 'conv_01hzy3v7k8m2q4r6t8w0x2z4a6',
  messageId: sampleMessageId,
  replyTo: null,
  clientMsgId: '6f1c9f0e-6d0a-4f0b-9a53-0c1f2b7d9e11',
  attachments: [],
  attachmentId: 'att_01hzy3v7k8m2q4r6t8w0x2z4d9',
  filename: 'photo.png',
  contentType: 'image/png',
  mimeType: 'image/png',
  durationMs: null,
  waveform: null,
  until: null,
  poll: null,
  mentions: null,
  text: 'Hello',
  question: 'When do we meet?',
  options: [
    { id: 1, text: 'Monday' },
    { id: 2, text: 'Tuesday' },
  ],
  closesAt: '2030-01-15T09:30:00.000Z',
  name: 'Team',
  imageUrl: 'https://example.com/alice.png',
  metadata: {},
  token: '<USER_TOKEN>',
  cursor: null,
  nextCursor: null,
  editedAt: null,
  deletedAt: null,
  deactivatedAt: null,
  email: 'ada@example.com',
  password: '<PASSWORD>',
  newPassword: '<NEW_PASSWORD>',
};

const fits = (schema: { [key: string]: Json }, value: Json): boolean => {
  const variants = Array.isArray(schema.anyOf) ? schema.anyOf : [schema];
  return variants.some((variant) => {
    if (!isObject(variant)) return false;
    if (value === null) return variant.type === 'null';
    if (Array.isArray(value)) {
      const items = isObject(variant.items) ? variant.items : {};
      return variant.type === 'array' && value.every((item) => fits(items, item));
    }
    if (isObject(value)) return variant.type === 'object';
    if (typeof value === 'number') return variant.type === 'integer' || variant.type === 'number';
    const { pattern } = variant;
    if (typeof pattern === 'string' && !new RegExp(pattern).test(String(value))) return false;
    return variant.type === typeof value;
  });
};

/** A plausible value of a schema (without `$ref`), for the documents' examples. */
export function sample(schema: Json, name = ''): Json {
  if (!isObject(schema)) return null;
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0] ?? null;
  if (Array.isArray(schema.examples)) return schema.examples[0] ?? null;
  const preset = known[name];
  if (preset !== undefined && fits(schema, preset)) return preset;
  if (Array.isArray(schema.anyOf)) return sample(schema.anyOf[0] ?? null, name);
  switch (schema.type) {
    case 'object': {
      const required = Array.isArray(schema.required) ? schema.required : [];
      const fields = Object.entries(isObject(schema.properties) ? schema.properties : {});
      // Optional fields that are usually null are left out.
      const shown = fields.filter(
        ([key, field]) =>
          required.includes(key) || known[key] !== null || (isObject(field) && fits(field, null)),
      );
      return Object.fromEntries(shown.map(([key, field]) => [key, sample(field, key)]));
    }
    case 'array':
      return schema.maxItems === 0 || schema.items === undefined ? [] : [sample(schema.items)];
    case 'integer':
    case 'number':
      return typeof schema.default === 'number' ? schema.default : 1;
    case 'boolean':
      return false;
    case 'string': {
      if (schema.format === 'date-time') return '2026-01-15T09:30:00.000Z';
      const prefix = /^\^([a-z_]+_)(\[a-z0-9\]\{1,40\}\$)?$/.exec(
        typeof schema.pattern === 'string' ? schema.pattern : '',
      )?.[1];
      return prefix ? `${prefix}01hzy3v7k8m2q4r6t8w0x2z4c8` : 'string';
    }
    default:
      return null;
  }
}
