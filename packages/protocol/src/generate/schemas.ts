export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isNull = (node: Json): boolean => isObject(node) && node.type === 'null';
const isText = (node: Json): node is { const: string } & JsonObject =>
  isObject(node) && node.type === 'string' && typeof node.const === 'string';

const scalars = new Set(['string', 'integer', 'number', 'boolean']);
/** What an integer holds in languages that want to know. */
const int32 = 2 ** 31 - 1;

/**
 * The same schema in the form that generators of clients understand: one of several texts is an `enum`, what may be null
 * has two types, a field that is always null is a text or null, which is what it is elsewhere, and integers that may be
 * large say so. Variants stay `anyOf`: of `oneOf` Go's generator makes code that needs another module.
 */
function usual(node: JsonObject): JsonObject {
  const { anyOf, ...rest } = node;
  if (Array.isArray(anyOf) && anyOf.every(isText))
    return { type: 'string', enum: anyOf.map((one) => one.const), ...rest };
  const simple = Array.isArray(anyOf) && anyOf.length === 2 && isNull(anyOf[1]!) ? anyOf[0] : undefined;
  if (isObject(simple) && typeof simple.type === 'string' && scalars.has(simple.type) && !simple.enum)
    return { ...simple, ...rest, type: [simple.type, 'null'] };
  if (node.type === 'integer' && !(Number(node.maximum) <= int32)) return { ...node, format: 'int64' };
  if (!isObject(node.properties)) return node;
  const properties = Object.entries(node.properties).map(([name, field]) => [
    name,
    isNull(field)
      ? { description: 'Always null', ...(field as JsonObject), type: ['string', 'null'] }
      : field,
  ]);
  return { ...node, properties: Object.fromEntries(properties) as JsonObject };
}

/**
 * Turns our schemas into those of a document: a schema with a title becomes a component and a `$ref`. Two different
 * schemas under one title would silently overwrite each other, so that throws.
 */
export function schemaRegistry() {
  const components: JsonObject = {};

  const visit = (node: Json): Json => {
    if (Array.isArray(node)) return node.map(visit);
    if (!isObject(node)) return node;
    const copy = usual(
      Object.fromEntries(Object.entries(node).map(([key, value]) => [key, visit(value)])) as JsonObject,
    );
    const { title } = node;
    if (typeof title !== 'string') return copy;
    const known = components[title];
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(copy)) {
      throw new Error(`two different schemas are titled ${title}`);
    }
    components[title] = copy;
    return { $ref: `#/components/schemas/${title}` };
  };

  return {
    components,
    /** Accepts a TypeBox schema, which is JSON Schema except for hidden marks that JSON drops. */
    use: (schema: object): JsonObject => visit(JSON.parse(JSON.stringify(schema)) as Json) as JsonObject,
  };
}
