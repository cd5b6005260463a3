import { propertyTexts } from '../texts/properties.ts';
import { isObject } from './schemas.ts';
import type { Json, JsonObject } from './schemas.ts';

const textOf = (place: string, name: string): string | undefined =>
  propertyTexts[`${place}.${name}`] ?? propertyTexts[name];

const described = (schema: JsonObject): boolean =>
  schema.description !== undefined ||
  (Array.isArray(schema.anyOf) && schema.anyOf.some((one) => isObject(one) && one.description !== undefined));

/**
 * Adds a description to every field of a schema that has none.
 * @param place the schema's title, or the operation.
 */
export function describeFields(schema: Json | undefined, place: string): void {
  if (Array.isArray(schema)) for (const one of schema) describeFields(one, place);
  if (!isObject(schema)) return;
  if (isObject(schema.properties))
    for (const [name, field] of Object.entries(schema.properties)) {
      if (!isObject(field)) continue;
      const text = described(field) ? undefined : textOf(place, name);
      if (text !== undefined) field.description = text;
      describeFields(field, place);
    }
  describeFields(schema.items, place);
  describeFields(schema.anyOf, place);
}

/** The same for parameters. A schema's own description is general; the one in the table is about this parameter. */
export function describeParameters(parameters: Json[], place: string): void {
  for (const one of parameters) {
    if (!isObject(one) || typeof one.name !== 'string' || one.description !== undefined) continue;
    const text = textOf(place, one.name);
    if (text !== undefined) one.description = text;
  }
}
