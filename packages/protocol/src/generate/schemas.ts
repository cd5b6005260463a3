export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Turns our schemas into those of a document: a schema with a title becomes a component and a `$ref`. Two different
 * schemas under one title would silently overwrite each other, so that throws.
 */
export function schemaRegistry() {
  const components: JsonObject = {};

  const visit = (node: Json): Json => {
    if (Array.isArray(node)) return node.map(visit);
    if (!isObject(node)) return node;
    const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, visit(value)]));
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
