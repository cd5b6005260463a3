import { limits, Type } from '@parley/protocol';
import type { TSchema } from 'typebox';

/** A message as a customer's database has it. What comes from there must fit. */

export const text = (most: number) => Type.String({ maxLength: most });
export const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
export const number = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
export const exactly = { additionalProperties: false };
const id = text(512);
const time = Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$' });

/** Characters of JSON, as it was written or as the database writes it. */
export const mostJson = {
  attachments: limits.bodyBytes,
  metadata: 2 * limits.metadataBytes,
  // Counts of reactions and a poll, whose texts may be longer than metadata.
  extras: 4 * limits.metadataBytes,
};

export const messageSchema = Type.Object(
  {
    kind: Type.Literal('message'),
    id,
    conversationId: id,
    seq: number,
    senderId: orNull(id),
    text: orNull(text(limits.textCharacters)),
    replyTo: orNull(id),
    /** JSON of the attachment objects. */
    attachments: orNull(text(mostJson.attachments)),
    /** JSON. */
    metadata: orNull(text(mostJson.metadata)),
    extras: orNull(text(mostJson.extras)),
    version: number,
    createdAt: time,
    editedAt: orNull(time),
    deletedAt: orNull(time),
    /** Hard-deleted: an empty stub stays, so that a late repetition does not bring the message back. */
    hard: Type.Boolean(),
    revision: number,
  },
  exactly,
);
export const messageFields = Object.keys(messageSchema.properties);
