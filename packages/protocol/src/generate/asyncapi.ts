import {
  clientFrames,
  ephemeralFrames,
  errorCodes,
  errorRow,
  eventNames,
  frameSchema,
  frameTypes,
  Hello,
  limits,
  realtime,
  socketEvents,
} from '../index.ts';
import type { EphemeralType } from '../index.ts';
import { ephemeralTexts, eventTexts } from '../texts/frames.ts';
import { describeFields } from './describe.ts';
import { sample, sampleMessageId } from './sample.ts';
import { isObject, schemaRegistry } from './schemas.ts';
import type { Json, JsonObject } from './schemas.ts';

const requestId = {
  anyOf: [{ type: 'string', minLength: 1, maxLength: 64 }, { type: 'integer' }],
  description: 'The id of the client’s frame, unique per socket',
};
const object = (properties: Record<string, object>, optional: string[] = []) => ({
  type: 'object',
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
  properties,
});
const text = (value: string) => ({ type: 'string', const: value });
const plain = (schema: object): Json => JSON.parse(JSON.stringify(schema)) as Json;

/** What all frames have; the fields of `d` are described by the table of texts. */
const envelope: Record<string, string> = {
  t: 'The type of the frame',
  id: 'Any id of yours, unique per socket; the answer has it as `re`',
  e: 'The event’s name',
  cid: 'The conversation’s id',
  seq: 'Its position in the conversation; every event takes the next one',
  d: 'The fields of this type',
};
/** Frames whose `d.id` is that of a message. */
const ofMessages = /^(client|ack|event|push)\.(message|reaction|poll)\./;
/** docs/calls.md describes these: they are forms of mediasoup and WebRTC. */
const ofMedia = /^((client|ack|push)\.call\.|(Rt|Ice|Dtls))/;

function describe(name: string, payload: JsonObject): JsonObject {
  const fields = payload.properties as JsonObject;
  for (const [field, one] of Object.entries(fields))
    if (isObject(one) && envelope[field] !== undefined) one.description ??= envelope[field];
  const data = isObject(fields.d) && isObject(fields.d.properties) ? fields.d.properties : {};
  if (ofMessages.test(name) && isObject(data.id)) data.id.description ??= 'The message’s id, `msg_…`';
  if (!ofMedia.test(name)) describeFields(payload, name);
  return payload;
}

const socketErrorCodes = errorCodes.filter((code) => errorRow(code).socket === 'error');

/** AsyncAPI 3.0 of the socket, from the server's point of view: it receives client frames and sends the others. */
export function asyncapi(): JsonObject {
  const { components: schemas, use } = schemaRegistry();
  const messages: JsonObject = {};
  const operations: JsonObject = {};
  const channel = { $ref: '#/channels/socket' };
  const inChannel = (name: string) => ({ $ref: `#/channels/socket/messages/${name}` });

  const message = (name: string, payload: object, summary: string) => {
    const example = sample(plain(payload)) as JsonObject;
    const d = example.d;
    if ('id' in example) example.id = '1';
    if (ofMessages.test(name) && isObject(d) && 'id' in d) d.id = sampleMessageId;
    messages[name] = {
      name,
      title: name,
      summary,
      payload: describe(name, use(payload)),
      examples: [{ payload: example }],
    };
  };
  const push = (name: string, payload: object, summary: string) => {
    message(name, payload, summary);
    operations[name] = { action: 'send', channel, summary, messages: [inChannel(name)] };
  };

  message('hello', object({ t: text('hello'), d: Hello }), 'The answer to `auth`');
  message(
    'error',
    object(
      {
        t: text('error'),
        re: requestId,
        code: { type: 'string', description: `One of ${socketErrorCodes.join(', ')}; more may come` },
        message: { type: 'string' },
        retryAfterMs: { type: 'integer', minimum: 0 },
        details: { type: 'object' },
      },
      ['re', 'retryAfterMs', 'details'],
    ),
    'A frame was refused; the connection is kept. `re` is missing where the frame had no readable id',
  );

  for (const type of frameTypes) {
    const { ack, summary } = clientFrames[type];
    const name = `client.${type}`;
    message(name, frameSchema(type), summary);
    const answers = type === 'auth' ? ['hello'] : ack ? [`ack.${type}`, 'error'] : [];
    if (ack) {
      message(`ack.${type}`, object({ t: text('ack'), re: requestId, d: ack }), `Ack of \`${type}\``);
    }
    operations[name] = {
      action: 'receive',
      channel,
      summary,
      messages: [inChannel(name)],
      ...(answers.length > 0 ? { reply: { channel, messages: answers.map(inChannel) } } : {}),
    };
  }
  for (const event of eventNames) {
    const payload = object({
      t: text('event'),
      e: text(event),
      cid: { type: 'string', pattern: '^conv_' },
      seq: { type: 'integer', minimum: 1 },
      d: socketEvents[event],
    });
    push(`event.${event}`, payload, `${eventTexts[event]}. An event of the conversation’s seq stream`);
  }
  for (const [type, d] of Object.entries(ephemeralFrames)) {
    const says = ephemeralTexts[type as EphemeralType];
    push(`push.${type}`, object({ t: text(type), d }), `${says}. Ephemeral: outside the seq stream`);
  }
  for (const [title, schema] of Object.entries(schemas))
    if (!ofMedia.test(title)) describeFields(schema, title);

  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Parley realtime',
      version: '1.0.0',
      description: `WebSocket with the subprotocol \`${realtime.subprotocol}\`: JSON text frames of at most ${limits.frameBytes} bytes. Send \`auth\` within ${realtime.authTimeoutMs / 1000} s as the first frame; the token never goes in the URL.`,
      license: { name: 'Apache-2.0' },
    },
    defaultContentType: 'application/json',
    servers: {
      gateway: {
        host: '{host}',
        protocol: 'wss',
        variables: { host: { description: 'The gateway’s host and port', default: 'localhost' } },
      },
    },
    channels: {
      socket: {
        address: '/v1',
        title: realtime.subprotocol,
        servers: [{ $ref: '#/servers/gateway' }],
        messages: Object.fromEntries(
          Object.keys(messages).map((name) => [name, { $ref: `#/components/messages/${name}` }]),
        ),
        bindings: {
          ws: {
            method: 'GET',
            query: {
              type: 'object',
              properties: {
                env: { type: 'string', description: 'The environment’s id' },
                sdk: { type: 'string', description: 'The client’s name/version' },
              },
            },
            headers: {
              type: 'object',
              required: ['Sec-WebSocket-Protocol'],
              properties: { 'Sec-WebSocket-Protocol': text(realtime.subprotocol) },
            },
            bindingVersion: '0.1.0',
          },
        },
      },
    },
    operations,
    components: { messages, schemas },
  };
}
