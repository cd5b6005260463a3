import { ApiError, frameSchema, frameTypes } from '@parley/protocol';
import type { FrameType } from '@parley/protocol';
import { unstorableText, validator } from '../../platform/validation.ts';
import type { Validator } from '../../platform/validation.ts';

/** Checks each frame that a client sends against its schema in the protocol package. */

const validators = new Map<string, Validator>(frameTypes.map((t) => [t, validator(frameSchema(t))]));

export interface Frame {
  t: FrameType;
  id: string | number | undefined;
  d: Record<string, unknown>;
}

/** Returns a well-formed frame or throws the error. Unknown fields are `invalid_frame` here (socket#invalid-frame). */
export function parseFrame(value: unknown): Frame {
  const frame = value as { t?: unknown; id?: unknown; d?: unknown } | null;
  if (typeof frame !== 'object' || frame === null || typeof frame.t !== 'string')
    throw new ApiError('invalid_frame', { message: 'A frame is a JSON object with t, id and d.' });
  const validate = validators.get(frame.t);
  if (!validate)
    throw new ApiError('invalid_frame', { message: `There is no frame "${frame.t.slice(0, 40)}".` });
  const problem = validate(frame);
  if (problem) {
    if (problem.code === 'text_too_long' || problem.code === 'metadata_too_large') throw problem;
    throw new ApiError('invalid_frame', { message: problem.message });
  }
  const unstorable = unstorableText(frame.d);
  if (unstorable !== null)
    throw new ApiError('invalid_frame', {
      message: `${unstorable}: text must be valid Unicode without NUL characters.`,
    });
  return {
    t: frame.t as FrameType,
    id: frame.id as string | number | undefined,
    d: (frame.d ?? {}) as Record<string, unknown>,
  };
}

/** The request id of a frame whose form is not checked yet. */
export function requestIdOf(value: unknown): string | number | undefined {
  const id = (value as { id?: unknown } | null | undefined)?.id;
  return (typeof id === 'string' && id.length <= 64) || Number.isSafeInteger(id)
    ? (id as string | number)
    : undefined;
}
