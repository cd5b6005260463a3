import type TypeBox from 'typebox';
import type { TSchema } from 'typebox';

/**
 * Makes JSON Schemas that TypeScript can read: the types are TypeBox's, and nothing of it is loaded. Its own functions
 * do the same for our schemas, but come in 370 modules, an eighth of the time in which the service starts.
 */

type Used =
  | 'Array'
  | 'Boolean'
  | 'Enum'
  | 'Integer'
  | 'Literal'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Record'
  | 'String'
  | 'Union'
  | 'Unknown'
  | 'Unsafe';
type Schema = Record<string, unknown>;

/** Marks a property that may be missing. It is not part of the schema: a copy with other options has lost it. */
const optional = Symbol('optional');

const of =
  (type: string) =>
  (options?: Schema): Schema => ({ type, ...options });

const make = {
  Array: (items: Schema, options?: Schema): Schema => ({ type: 'array', items, ...options }),
  Boolean: of('boolean'),
  Enum: (values: readonly unknown[], options?: Schema): Schema => ({ enum: values, ...options }),
  Integer: of('integer'),
  Literal: (value: unknown, options?: Schema): Schema => ({ type: typeof value, const: value, ...options }),
  Null: of('null'),
  Number: of('number'),
  Object: (properties: Record<string, Schema>, options?: Schema): Schema => {
    const required = Object.keys(properties).filter((name) => !(optional in properties[name]!));
    return { type: 'object', ...(required.length > 0 && { required }), properties, ...options };
  },
  Optional: (schema: Schema): Schema => Object.defineProperty({ ...schema }, optional, { value: true }),
  /** The names of the properties are any texts. */
  Record: (_names: Schema, values: Schema, options?: Schema): Schema => ({
    type: 'object',
    patternProperties: { '^.*$': values },
    ...options,
  }),
  String: of('string'),
  Union: (anyOf: readonly Schema[], options?: Schema): Schema => ({ anyOf, ...options }),
  Unknown: (options?: Schema): Schema => ({ ...options }),
  Unsafe: (schema: TSchema): TSchema => schema,
};

export const Type = make as unknown as Pick<typeof TypeBox, Used>;
