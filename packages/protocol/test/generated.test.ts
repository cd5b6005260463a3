import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Type } from '../src/type.ts';
import type { TSchema } from 'typebox';
import { Check } from 'typebox/value';
import { asyncapi } from '../src/generate/asyncapi.ts';
import { openapi, webhooks } from '../src/generate/openapi.ts';
import { outputs } from '../src/generate/outputs.ts';
import { sample } from '../src/generate/sample.ts';
import { isObject, schemaRegistry } from '../src/generate/schemas.ts';
import type { Json, JsonObject } from '../src/generate/schemas.ts';
import {
  acceptsIdempotencyKey,
  clientFrames,
  ephemeralFrames,
  errorCodes,
  errorRow,
  eventNames,
  frameSchema,
  frameTypes,
  httpCallers,
  operationList,
  socketEvents,
} from '../src/index.ts';

const root = join(import.meta.dirname, '../../..');

/** Follows a JSON pointer, and fails where it leads nowhere. */
function at(document: JsonObject, pointer: string): JsonObject {
  let node: Json | undefined = document;
  for (const step of pointer.slice(2).split('/')) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
    node = isObject(node) ? node[key] : undefined;
  }
  assert.ok(isObject(node), `${pointer} leads nowhere`);
  return node;
}
const resolved = (document: JsonObject, node: Json | undefined): JsonObject =>
  isObject(node) && typeof node.$ref === 'string' ? at(document, node.$ref) : (node as JsonObject);
function refs(node: Json): string[] {
  if (Array.isArray(node)) return node.flatMap(refs);
  if (!isObject(node)) return [];
  return [...(typeof node.$ref === 'string' ? [node.$ref] : []), ...Object.values(node).flatMap(refs)];
}

test('the generated files on disk are those of the tables (npm run generate)', () => {
  for (const [path, text] of Object.entries(outputs())) {
    assert.ok(readFileSync(join(root, path), 'utf8') === text, `${path} is stale`);
  }
});

test('openapi.json is valid OpenAPI 3.1 and every $ref leads somewhere', async () => {
  const document = openapi();
  for (const ref of refs(document)) at(document, ref);
  const validator = new Validator();
  const result = await validator.validate(structuredClone(document));
  assert.deepEqual(result.errors ?? [], []);
  assert.equal(result.valid, true);
  assert.equal(validator.version, '3.1');
});

test('openapi.json says for every operation who calls it, what it takes and which errors it gives', () => {
  const document = openapi();
  for (const op of operationList) {
    const item = at(document, `#/paths/${op.path.replaceAll('/', '~1')}/${op.method.toLowerCase()}`);
    assert.equal(item.operationId, op.name);
    assert.deepEqual(item['x-callers'], httpCallers(op));
    const parameters = (item.parameters as Json[]).map((one) => resolved(document, one).name);
    for (const name of [...Object.keys(op.params.properties), ...Object.keys(op.query.properties)]) {
      assert.ok(parameters.includes(name), `${op.name} lacks ${name}`);
    }
    assert.equal(parameters.includes('Idempotency-Key'), acceptsIdempotencyKey(op));
    const responses = item.responses as JsonObject;
    for (const status of op.statuses) assert.ok(responses[String(status)], `${op.name} ${status}`);
    for (const response of Object.values(responses)) {
      const headers = resolved(document, response).headers as JsonObject;
      for (const name of ['Request-Id', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset']) {
        assert.ok(headers[name], `${op.name} ${name}`);
      }
    }
    assert.ok((resolved(document, responses['429']).headers as JsonObject)['Retry-After']);
    for (const code of [...op.errors, 'invalid_request', 'token_invalid', 'internal'] as const) {
      const response = resolved(document, responses[String(errorRow(code).http)]);
      assert.ok((response['x-error-codes'] as Json[]).includes(code), `${op.name} ${code}`);
    }
  }
});

/** Every object of a document that may be a schema, with the way to it; examples are not looked into. */
function* nodes(node: Json, way = '#'): Generator<[way: string, node: JsonObject]> {
  if (Array.isArray(node)) for (const [i, one] of node.entries()) yield* nodes(one, `${way}/${i}`);
  if (!isObject(node)) return;
  yield [way, node];
  for (const [key, one] of Object.entries(node))
    if (key !== 'example' && key !== 'examples') yield* nodes(one, `${way}/${key}`);
}

test('generators of clients find no form in openapi.json that they stumble over', () => {
  const document = openapi();
  for (const [way, node] of nodes(document)) {
    const { anyOf } = node;
    assert.ok(!('not' in node), `${way} allows nothing`);
    if (node.type === 'null') assert.match(way, /\/anyOf\/\d+$/, `${way} is always null`);
    if (node.type === 'integer' && !way.startsWith('#/components/headers/'))
      assert.equal(
        node.format,
        Number(node.maximum) < 2 ** 31 ? undefined : 'int64',
        `${way}: an integer has 32 bits in Go`,
      );
    if (!Array.isArray(anyOf)) continue;
    assert.ok(!anyOf.some((one) => isObject(one) && 'const' in one), `${way}: constants are an enum`);
    // A variant without a name of its own gets one from its place, which may be taken.
    const objects = anyOf.filter((one) => isObject(one) && one.type === 'object' && one.properties);
    if (anyOf.length > 2 || !anyOf.some((one) => isObject(one) && one.type === 'null'))
      assert.deepEqual(objects, [], `${way}: variants are components`);
  }
  const names = Object.keys(at(document, '#/components/schemas'));
  // Go's constructors: that of Invitation would be NewInvitation.
  for (const name of names)
    assert.ok(!names.some((other) => name === `New${other}`), `${name} is a constructor in Go`);
});

test('openapi.json: an event is told from others by its type', () => {
  const document = openapi();
  const record = at(document, '#/components/schemas/EventRecord');
  const { propertyName, mapping } = record.discriminator as { propertyName: string; mapping: JsonObject };
  assert.equal(propertyName, 'type');
  assert.deepEqual(Object.keys(mapping), eventNames);
  assert.deepEqual(
    record.anyOf,
    Object.values(mapping).map(($ref) => ({ $ref })),
  );
  for (const [name, ref] of Object.entries(mapping))
    assert.equal(((at(document, ref as string).properties as JsonObject).type as JsonObject).const, name);
});

test('openapi.json: answers as CSV and lines of JSON have their content types', () => {
  const document = openapi();
  const types = (path: string) =>
    Object.keys(at(document, `#/paths/${path.replaceAll('/', '~1')}/get/responses/200/content`));
  assert.deepEqual(types('/v1/analytics'), ['application/json', 'text/csv']);
  assert.deepEqual(types('/v1/audit'), ['application/json', 'text/csv', 'application/jsonl']);
  assert.deepEqual(types('/v1/live/trace'), ['application/jsonl']);
  assert.deepEqual(types('/v1/users'), ['application/json']);
});

test('openapi.json: an Idempotency-Key is any visible text', () => {
  const { schema } = at(openapi(), '#/components/parameters/IdempotencyKey') as { schema: JsonObject };
  assert.deepEqual(schema, { type: 'string', pattern: '^[!-~]{1,255}$' });
});

test('examples keep to their own schemas', () => {
  const schemas: [string, TSchema][] = [
    ...operationList.flatMap((op): [string, TSchema][] => [
      ...(op.body ? [[`${op.name} body`, op.body] as [string, TSchema]] : []),
      ...(op.response ? [[`${op.name} response`, op.response] as [string, TSchema]] : []),
    ]),
    ...frameTypes.map((type): [string, TSchema] => [`frame ${type}`, frameSchema(type)]),
    ...eventNames.map((name): [string, TSchema] => [`event ${name}`, socketEvents[name]]),
  ];
  for (const [name, schema] of schemas) {
    const example = sample(JSON.parse(JSON.stringify(schema)) as Json);
    assert.ok(Check(schema, example), `${name}: ${JSON.stringify(example)}`);
  }
});

test('webhook events become the `webhooks` section', async () => {
  const { components, use } = schemaRegistry();
  const section = webhooks({ 'user.deleted': Type.Object({ userId: Type.String() }) }, use);
  const document = { ...openapi(), webhooks: section };
  assert.deepEqual(components, {});
  const result = await new Validator().validate(structuredClone(document));
  assert.equal(result.valid, true);
  const body = at(section, '#/user.deleted/post/requestBody/content/application~1json');
  assert.deepEqual((body.schema as JsonObject).required, ['id', 'type', 'createdAt', 'env', 'data']);
  assert.equal((body.example as JsonObject).type, 'user.deleted');
});

test('one title for two schemas is refused', () => {
  const { use } = schemaRegistry();
  use({ type: 'string', title: 'Same' });
  assert.deepEqual(use({ type: 'string', title: 'Same' }), { $ref: '#/components/schemas/Same' });
  assert.throws(() => use({ type: 'integer', title: 'Same' }), /Same/);
});

test('asyncapi.json has every frame, ack, event and ephemeral frame, and every $ref leads somewhere', () => {
  const document = asyncapi();
  assert.equal(document.asyncapi, '3.0.0');
  for (const ref of refs(document)) at(document, ref);
  const acked = Object.entries(clientFrames).filter(([, frame]) => frame.ack);
  const expected = [
    'hello',
    'error',
    ...Object.keys(clientFrames).map((type) => `client.${type}`),
    ...acked.map(([type]) => `ack.${type}`),
    ...eventNames.map((name) => `event.${name}`),
    ...Object.keys(ephemeralFrames).map((type) => `push.${type}`),
  ].sort();
  assert.deepEqual(Object.keys(at(document, '#/components/messages')).sort(), expected);
  assert.deepEqual(Object.keys(at(document, '#/channels/socket/messages')).sort(), expected);
  for (const [name, operation] of Object.entries(at(document, '#/operations'))) {
    const { action, messages } = operation as { action: string; messages: { $ref: string }[] };
    assert.equal(action, name.startsWith('client.') ? 'receive' : 'send', name);
    assert.deepEqual(messages, [{ $ref: `#/channels/socket/messages/${name}` }]);
  }
  const reply = at(document, '#/operations/client.message.send/reply').messages;
  assert.deepEqual(reply, [
    { $ref: '#/channels/socket/messages/ack.message.send' },
    { $ref: '#/channels/socket/messages/error' },
  ]);
});

test('errors.md has a row for every code and close code', () => {
  const page = outputs()['packages/protocol/generated/errors.md'] ?? '';
  for (const code of errorCodes) assert.ok(page.includes(`\n| \`${code}\` |`), code);
  assert.ok(page.includes('\n| 4009 | more than 10 sockets for the user |'));
});

type Node = Record<string, any>;

/** Notes the fields of a schema that do not say what they mean. */
function noteUndescribed(schema: Node | undefined, place: string, missing: string[]): void {
  if (!schema) return;
  const says = (node: Node): boolean =>
    typeof node.description === 'string' ||
    (node.anyOf ?? []).some((one: Node) => typeof one.description === 'string');
  for (const [name, field] of Object.entries<Node>(schema.properties ?? {})) {
    if (!says(field)) missing.push(`${place}.${name}`);
    noteUndescribed(field, `${place}.${name}`, missing);
  }
  noteUndescribed(schema.items, place, missing);
  for (const one of schema.anyOf ?? []) noteUndescribed(one, place, missing);
}

test('every operation, parameter and property of openapi.json says what it means', () => {
  const missing: string[] = [];
  const look = (schema: Node | undefined, place: string): void => noteUndescribed(schema, place, missing);
  const api = openapi() as Node;
  for (const [name, schema] of Object.entries<Node>(api.components.schemas)) look(schema, name);
  for (const item of [...Object.values<Node>(api.paths), ...Object.values<Node>(api.webhooks)])
    for (const op of Object.values<Node>(item)) {
      if (!op.description) missing.push(op.operationId);
      for (const parameter of op.parameters ?? [])
        if (!parameter.$ref && !parameter.description) missing.push(`${op.operationId} ${parameter.name}`);
      look(op.requestBody?.content['application/json']?.schema, op.operationId);
      for (const answer of Object.values<Node>(op.responses))
        look(answer.content?.['application/json']?.schema, op.operationId);
    }
  assert.deepEqual(missing, [], 'add them to packages/protocol/src/texts');
});

test('every event, frame and field of asyncapi.json says what it means, without the media of calls', () => {
  const missing: string[] = [];
  const { messages, schemas } = (asyncapi() as Node).components;
  const media = /^((client|ack|push)\.call\.|(Rt|Ice|Dtls))/;
  for (const [name, { summary, payload }] of Object.entries<Node>(messages)) {
    assert.match(summary, /^[A-Z`]/, name);
    if (!media.test(name)) noteUndescribed(payload, name, missing);
  }
  for (const [name, schema] of Object.entries<Node>(schemas))
    if (!media.test(name)) noteUndescribed(schema, name, missing);
  assert.deepEqual(missing, [], 'add them to packages/protocol/src/texts');
  const { id } = messages['client.reaction.set'].examples[0].payload.d;
  assert.match(id, /^msg_/, 'the example is a message');
});

test('docs/calls.md, A client of your own: asyncapi.json describes every object of the call frames', () => {
  const document = asyncapi();
  const bare: string[] = [];
  const seen = new Set<JsonObject>();
  const look = (node: Json | undefined, place: string): void => {
    if (Array.isArray(node)) return node.forEach((one) => look(one, place));
    const schema = resolved(document, node);
    if (!isObject(schema) || seen.has(schema)) return;
    seen.add(schema);
    if (schema.type === 'object' && !schema.properties && !schema.description) bare.push(place);
    for (const [name, field] of Object.entries((schema.properties ?? {}) as JsonObject))
      if (name !== 'metadata') look(field, `${place}.${name}`);
    look(schema.items, place);
    look(schema.anyOf, place);
  };
  const messages = at(document, '#/components/messages');
  for (const [name, message] of Object.entries(messages))
    if (/^(client|ack|push)\.call\./.test(name)) look((message as JsonObject).payload, name);
  assert.deepEqual(bare, []);
  const { codecs } = (at(document, '#/components/schemas/RtpCapabilities').properties ?? {}) as JsonObject;
  assert.equal((codecs as JsonObject).maxItems, 100, 'with bounds');
});
