import assert from 'node:assert/strict';
import { test } from 'node:test';
import TypeBox from 'typebox';
import { Type } from '../src/type.ts';

const options = { description: 'as said', minimum: 1 };

/** Every function, as the protocol uses it. */
const made = (type: typeof Type) => [
  type.Array(type.String(), { maxItems: 3 }),
  type.Boolean(options),
  type.Enum(['one', 'two']),
  type.Integer(options),
  type.Literal('one'),
  type.Literal(1, options),
  type.Null(),
  type.Number(options),
  type.Object({}),
  type.Object(
    { one: type.String(), two: type.Optional(type.Integer()), three: type.Null() },
    { additionalProperties: false },
  ),
  type.Object({ one: type.Optional(type.Boolean()) }),
  // A copy of an optional property is not optional.
  type.Object({ one: { ...type.Optional(type.Boolean()), title: 'One' } }),
  type.Record(type.String(), type.Integer()),
  type.String({ pattern: '^a$' }),
  type.Union([type.String(), type.Null()], options),
  type.Unknown(options),
  type.Unsafe<string>({ type: 'string', enum: ['a'] }),
];

test('api#additive: schemas are those that TypeBox makes, down to the order of their keys', () => {
  assert.deepEqual(
    made(Type).map((schema) => JSON.stringify(schema)),
    made(TypeBox).map((schema) => JSON.stringify(schema)),
  );
});
