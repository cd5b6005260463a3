import { Type } from '../type.ts';
import type { TProperties, TSchema } from 'typebox';
import { limits } from '../limits.ts';
import { userIdPattern } from '../ids.ts';

/** Request objects are closed: an unknown field is refused (api#unknown-fields). */
export const closed = <P extends TProperties>(properties: P) =>
  Type.Object(properties, { additionalProperties: false });
/** Response objects are open: clients must tolerate new fields (api#additive). */
export const open = <P extends TProperties>(properties: P, title?: string) =>
  Type.Object(properties, title ? { title } : {});
export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
export const optional = Type.Optional;

/** A name in one line: it is put into mails, among others, so it has no line break and no other control character. */
export const line = (options: { minLength?: number; maxLength: number; description?: string }) =>
  Type.String({ ...options, pattern: '^[^\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]*$' });

export const UserId = Type.String({
  pattern: userIdPattern,
  description: '1 to 128 characters of A-Z a-z 0-9 _ - @ . :',
});
/** An id of ours as a caller sends it. Its form is not checked; an unknown id is not found. */
export const IdParam = Type.String({ minLength: 1, maxLength: 200 });
export const Timestamp = Type.String({ format: 'date-time', description: 'ISO 8601, UTC' });
/** A time as a caller sends it; a date means its beginning. */
export const Moment = Type.String({
  pattern: '^\\d{4}-\\d{2}-\\d{2}(T\\d{2}:\\d{2}(:\\d{2}(\\.\\d{1,9})?)?(Z|[+-]\\d{2}:\\d{2}))?$',
  description: 'ISO 8601, a date or a time with its zone',
});
export const Seq = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

/** Checked by the `x-metadata` keyword: 4 KB serialized, depth 5 (the object itself is level 1). */
export const Metadata = Type.Unsafe<Record<string, unknown>>({
  type: 'object',
  'x-metadata': true,
  description: 'A JSON object of at most 4 KB serialized and 5 levels',
});
export const Text = Type.String({
  minLength: 1,
  maxLength: limits.textCharacters,
  'x-error': 'text_too_long',
  description: '1 to 5,000 characters (Unicode code points)',
});

export const Limit = Type.Integer({ minimum: 1, maximum: limits.pageMax, default: limits.pageDefault });
export const Cursor = Type.String({
  minLength: 1,
  maxLength: 8_192,
  description: 'nextCursor of the page before',
});
export const pageQuery = { limit: optional(Limit), cursor: optional(Cursor) };

export const page = <T extends TSchema>(item: T) =>
  open({ data: Type.Array(item), nextCursor: nullable(Type.String()) });
/**
 * Pages by seq (messages and events) have `hasMore` instead of a cursor. Descending ones begin at the newest unless
 * the caller says otherwise.
 */
export const seqPage = <T extends TSchema>(item: T, order: 'ascending' | 'descending') =>
  open({
    data: Type.Array(item, { description: `In ${order} seq`, 'x-order': order }),
    hasMore: Type.Boolean(),
  });
