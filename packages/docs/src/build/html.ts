import type { Schema } from './documents.ts';

/** Text that is HTML already. Everything else is escaped when it is put into a template. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}
type Part = Html | string | number | undefined | null | false | readonly Part[];

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const characters = Object.fromEntries(
  Object.entries(entities).map(([character, entity]) => [entity, character]),
);
const print = (part: Part): string => {
  if (part instanceof Html) return part.text;
  if (Array.isArray(part)) return part.map(print).join('');
  if (part === undefined || part === null || part === false) return '';
  return String(part).replaceAll(/[&<>"']/g, (character) => entities[character] ?? '');
};
export const html = (strings: TemplateStringsArray, ...parts: Part[]): Html =>
  new Html(strings.map((text, i) => text + print(parts[i])).join(''));

/** Escapes the text, and renders `code` in our own summaries and descriptions as code. */
export const prose = (text: string): Html =>
  new Html(print(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>'));
/** The text of HTML, for the search. */
export const plain = (part: Html): string =>
  part.text
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/&(amp|lt|gt|quot|#39);/g, (entity) => characters[entity] ?? '')
    .replaceAll(/\s+/g, ' ')
    .trim();

const join = (parts: Html[], between: string): Html => new Html(parts.map((part) => part.text).join(between));

/** A type in one line: `string`, `User | null`, `Member[]`, `"owner" | "member"`. */
export function typeOf(schema: Schema): Html {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? '';
    return html`<a href="/docs/reference/objects#${name}">${name}</a>`;
  }
  if (schema.const !== undefined) return html`${JSON.stringify(schema.const)}`;
  if (schema.enum) return html`${schema.enum.map((one) => JSON.stringify(one)).join(' | ')}`;
  if (schema.anyOf) return join(schema.anyOf.map(typeOf), ' | ');
  if (Array.isArray(schema.type))
    return join(
      schema.type.map((type) => (type === 'null' ? html`null` : typeOf({ ...schema, type }))),
      ' | ',
    );
  if (schema.type === 'array') {
    if (schema.maxItems === 0 || !schema.items) return html`[]`;
    return schema.items.anyOf ? html`(${typeOf(schema.items)})[]` : html`${typeOf(schema.items)}[]`;
  }
  return html`${schema.format === 'date-time' ? 'timestamp' : (schema.type ?? 'any')}`;
}

/** The rules for a value besides its type. */
export function rulesOf(schema: Schema): Html {
  const variants = schema.anyOf?.filter(({ type }) => type !== 'null') ?? [];
  if (variants.length === 1 && variants[0]) return rulesOf({ ...schema, ...variants[0], anyOf: undefined });
  const rules: string[] = [];
  if (schema.description !== undefined) rules.push(schema.description);
  else if (schema.pattern !== undefined && /^\^[a-z_]+_$/.test(schema.pattern)) {
    rules.push(`\`${schema.pattern.slice(1)}…\``);
  }
  const { minimum, maximum, maxLength, maxItems } = schema;
  if (minimum !== undefined && maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER) {
    rules.push(`${minimum} to ${maximum}`);
  }
  if (maxLength !== undefined && schema.description === undefined)
    rules.push(`at most ${maxLength} characters`);
  if (maxItems !== undefined && maxItems > 0) rules.push(`at most ${maxItems}`);
  if (schema.default !== undefined) rules.push(`default \`${String(schema.default)}\``);
  return prose(rules.join('; '));
}
