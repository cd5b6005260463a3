import type { Schema } from './documents.ts';
import { html } from './html.ts';
import type { Html } from './html.ts';
import type { Call } from './reference-call.ts';
import type { Filled } from './samples.ts';

/** What the browser makes the form of "Try it" from: browser/try.ts. */

export interface TryField {
  name: string;
  in: 'path' | 'query' | 'body';
  required: boolean;
  kind: 'text' | 'number' | 'boolean' | 'choice' | 'json';
  choices?: string[];
  /** What the example says. */
  value?: string;
}
export interface TryCall {
  name: string;
  method: string;
  path: string;
  fields: TryField[];
}

function kindOf(schema: Schema): Pick<TryField, 'kind' | 'choices'> {
  const variants = schema.anyOf?.filter(({ type }) => type !== 'null') ?? [];
  if (variants.length > 0 && variants.every((one) => one.const !== undefined))
    return { kind: 'choice', choices: variants.map((one) => String(one.const)) };
  const [only] = variants;
  if (variants.length === 1 && only) return kindOf(only);
  if (schema.enum) return { kind: 'choice', choices: schema.enum.map(String) };
  const [type] = [schema.type].flat().filter((one) => one !== 'null');
  if (type === 'integer' || type === 'number') return { kind: 'number' };
  if (type === 'boolean') return { kind: 'boolean' };
  return { kind: type === 'string' ? 'text' : 'json' };
}

const shown = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** A key or a token is needed: operations of the dashboard's session are not offered. */
export function tryData({ op, method, path, parameters, body }: Call, example: Filled): Html | false {
  if (!op['x-callers']?.some((one) => one === 'server' || one === 'client')) return false;
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  const asked = parameters
    .filter((one) => one.in === 'path' || (one.in === 'query' && one.name !== 'env'))
    .map((one): TryField => {
      const value = one.in === 'path' ? example.ids[names.indexOf(one.name)] : example.query[one.name];
      return {
        name: one.name,
        in: one.in as 'path' | 'query',
        required: one.required === true,
        ...kindOf(one.schema),
        ...(value === undefined ? {} : { value: shown(value) }),
      };
    });
  const sent = Object.entries(body?.schema.properties ?? {}).map(([name, schema]): TryField => {
    const value = example.body?.[name];
    return {
      name,
      in: 'body',
      required: body?.schema.required?.includes(name) === true,
      ...kindOf(schema),
      ...(value === undefined ? {} : { value: shown(value) }),
    };
  });
  const call: TryCall = { name: op.operationId, method, path, fields: [...asked, ...sent] };
  return html`<div class="try" data-call="${JSON.stringify(call)}"></div>`;
}
