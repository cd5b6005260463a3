import type { Parameter, Schema } from './documents.ts';
import { html, prose, rulesOf, typeOf } from './html.ts';
import type { Html } from './html.ts';

const deepest = 4;

interface Field {
  name: string;
  required: boolean;
  type: Html;
  text: Html;
}

/** The fields of an object; those of nested objects follow with a dotted name. */
function fieldsOf(schema: Schema, prefix = '', depth = 0): Field[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const path = prefix + name;
    const own = {
      name: path,
      required: schema.required?.includes(name) === true,
      type: typeOf(field),
      text: rulesOf(field),
    };
    const isArray = field.type === 'array';
    const inner = isArray ? field.items : field;
    const nested =
      inner?.properties && depth < deepest
        ? fieldsOf(inner, `${path}${isArray ? '[]' : ''}.`, depth + 1)
        : [];
    return [own, ...nested];
  });
}

const rows = (fields: Field[], mark: 'required' | 'optional'): Html =>
  html`<dl class="fields">
    ${fields.map(
      ({ name, required, type, text }) =>
        html`<div>
          <dt>
            <code>${name}</code>
            ${required === (mark === 'required') && html`<span class="${mark}">${mark}</span>`}
            <small>${type}</small>
          </dt>
          <dd>${text}</dd>
        </div>`,
    )}
  </dl>`;

/** @param mark what is said of fields: which a request needs, or which an answer may lack. */
export function schemaFields(schema: Schema, mark: 'required' | 'optional'): Html {
  if (schema.$ref !== undefined || !schema.properties) return html`<p><code>${typeOf(schema)}</code></p>`;
  const fields = fieldsOf(schema);
  return fields.length > 0 ? rows(fields, mark) : html`<p>No fields.</p>`;
}

export const parameterFields = (parameters: Parameter[]): Html =>
  rows(
    parameters.map((one) => ({
      name: one.name,
      required: one.required === true,
      type: typeOf(one.schema),
      text: one.description === undefined ? rulesOf(one.schema) : prose(one.description),
    })),
    'required',
  );

/** The names of all fields, for the search. */
export const fieldNames = (schema: Schema | undefined): string =>
  schema === undefined
    ? ''
    : fieldsOf(schema)
        .map(({ name }) => name)
        .join(' ');
