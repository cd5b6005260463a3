import { Ajv2020 } from 'ajv/dist/2020.js';
import type { ErrorObject, ValidateFunction } from 'ajv';
import { ApiError, limits } from '@parley/protocol';
import type { ErrorCode } from '@parley/protocol';

/**
 * Turns failures of a JSON Schema into ApiError. `x-error` names the error code for breaking a rule of that schema;
 * `x-metadata` is the rule for metadata.
 */

function depth(value: unknown, limit: number): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (limit === 0) return 1;
  let deepest = 0;
  for (const inner of Object.values(value)) deepest = Math.max(deepest, depth(inner, limit - 1));
  return deepest + 1;
}

const metadataFits = (value: unknown): boolean =>
  depth(value, limits.metadataDepth) <= limits.metadataDepth &&
  Buffer.byteLength(JSON.stringify(value)) <= limits.metadataBytes;

function ajv(coerceTypes: boolean): Ajv2020 {
  const instance = new Ajv2020({
    coerceTypes,
    verbose: true,
    allowUnionTypes: true,
    strict: false,
    validateFormats: false,
    // A test looks at the schemas; here the schema of schemas would have to be compiled first, which takes 50 ms.
    meta: false,
    validateSchema: false,
  });
  instance.addKeyword({
    keyword: 'x-metadata',
    type: 'object',
    validate: (_: unknown, data: unknown) => metadataFits(data),
    errors: false,
  });
  instance.addKeyword('x-error');
  return instance;
}

const strict = ajv(false);
/** For query strings and paths, where everything arrives as text. */
const coercing = ajv(true);

export type Validator = (value: unknown) => ApiError | null;

/** Compiled at its first use: all schemas together would take a third of the time that a process needs to start. */
const lazily =
  (instance: Ajv2020) =>
  (schema: object): Validator => {
    let compiled: ValidateFunction | undefined;
    return (value) => {
      const validate = (compiled ??= instance.compile(schema));
      return validate(value) ? null : (unknownField(schema, value) ?? toApiError(validate.errors!));
    };
  };

export const validator = lazily(strict);
export const coercingValidator = lazily(coercing);

const unknown = (param: string): ApiError =>
  new ApiError('unknown_field', { param, message: `Unknown field: ${param}.` });

/** api#unknown-fields: an unknown field is reported before anything else that is wrong. */
function unknownField(schema: object, value: unknown): ApiError | null {
  const { properties = {}, additionalProperties } = schema as {
    properties?: object;
    additionalProperties?: boolean;
  };
  if (additionalProperties !== false || typeof value !== 'object' || value === null || Array.isArray(value))
    return null;
  const field = Object.keys(value).find((key) => !Object.hasOwn(properties, key));
  return field === undefined ? null : unknown(field);
}

function toApiError(errors: ErrorObject[]): ApiError {
  // A union reports the failures of every branch. A branch's own code or message says more than "anyOf".
  const error =
    errors.find((e) => codeOf(e) !== 'invalid_request') ?? errors.find(isTelling) ?? errors.at(-1)!;
  const code = codeOf(error);
  const param = paramOf(error);
  if (code === 'text_too_long' || code === 'metadata_too_large') return new ApiError(code, { param });
  if (code === 'unknown_field') return unknown(param);
  return new ApiError('invalid_request', {
    ...(param ? { param } : {}),
    message: `${param || 'The request'} ${problemOf(error)}.`,
  });
}

const isTelling = ({ keyword }: ErrorObject): boolean => keyword !== 'anyOf' && keyword !== 'const';

function problemOf({ keyword, message, schema }: ErrorObject): string {
  if (keyword === 'required') return 'is required';
  const values = keyword === 'enum' ? schema : keyword === 'anyOf' ? constants(schema) : null;
  if (Array.isArray(values)) return `must be one of ${values.join(', ')}`;
  return (message ?? 'is not valid')
    .replace('NOT have fewer than', 'have at least')
    .replace('NOT have more than', 'have at most')
    .replace(/ 1 (character|item)s$/, ' 1 $1');
}

function constants(branches: unknown): unknown[] | null {
  const values = (branches as { const?: unknown }[]).map((branch) => branch.const);
  return values.includes(undefined) ? null : values;
}

function codeOf(error: ErrorObject): ErrorCode {
  if (error.keyword === 'additionalProperties') return 'unknown_field';
  if (error.keyword === 'x-metadata') return 'metadata_too_large';
  const named = (error.parentSchema as { 'x-error'?: ErrorCode } | undefined)?.['x-error'];
  if (named && error.keyword === 'maxLength') return named;
  return 'invalid_request';
}

/** The path of the field in the form `a.b[2].c` (api#validation). */
function paramOf(error: ErrorObject): string {
  const path = error.instancePath
    .split('/')
    .slice(1)
    .map((p) => p.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((out, p) => (/^\d+$/.test(p) ? `${out}[${p}]` : out ? `${out}.${p}` : p), '');
  const params = error.params as { additionalProperty?: string; missingProperty?: string };
  const last = params.additionalProperty ?? params.missingProperty;
  return last === undefined ? path : path ? `${path}.${last}` : last;
}

/** No valid request is nested deeper; it is a bound because the function below is recursive. */
const maxNesting = 32;

/**
 * NUL characters and broken surrogates cannot be stored as text, so they are refused everywhere (api#validation). Returns the path of the field.
 */
export function unstorableText(value: unknown, path = '', level = 0): string | null {
  if (typeof value === 'string') return value.includes('\0') || !value.isWellFormed() ? path : null;
  if (typeof value !== 'object' || value === null) return null;
  if (level > maxNesting) return null;
  for (const [key, inner] of Object.entries(value)) {
    const at = Array.isArray(value) ? `${path}[${key}]` : path ? `${path}.${key}` : key;
    if (key.includes('\0') || !key.isWellFormed()) return path || 'body';
    const found = unstorableText(inner, at, level + 1);
    if (found !== null) return found;
  }
  return null;
}
