import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import {
  clientFrames,
  ephemeralFrames,
  frameSchema,
  frameTypes,
  Hello,
  operationList,
  socketEvents,
  webhookEvents,
} from '@parley/protocol';

/** Processes compile our schemas without looking at them, because compiling the schema of schemas takes as long as many of ours. */

const declared: [name: string, schema: object | null | undefined][] = [
  ...operationList.flatMap(({ name, params, query, body, response }): typeof declared => [
    [`params of ${name}`, params],
    [`query of ${name}`, query],
    [`body of ${name}`, body],
    [`response of ${name}`, response],
  ]),
  ...frameTypes.flatMap((t): typeof declared => [
    [t, frameSchema(t)],
    [`ack of ${t}`, clientFrames[t].ack],
  ]),
  ...Object.entries({ Hello, ...ephemeralFrames, ...socketEvents }),
  ...Object.entries(webhookEvents).map(([name, schema]): (typeof declared)[0] => [`webhook ${name}`, schema]),
];

test('api#validation: every declared schema is one of JSON Schema 2020-12', () => {
  const ajv = new Ajv2020({ strict: false });
  const schemas = declared.filter(([, schema]) => schema != null);
  assert.ok(schemas.length > operationList.length * 2, 'there are schemas');
  for (const [name, schema] of schemas)
    assert.ok(ajv.validateSchema(schema!), `${name}: ${ajv.errorsText(ajv.errors)}`);
});
