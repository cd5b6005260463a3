import type { TProperties, TSchema } from 'typebox';
import { closed } from './schemas/common.ts';

export const frame = <P extends TProperties, A extends TSchema | null>(d: P, ack: A, summary: string) => ({
  d: closed(d),
  /** null if the frame gets no ack. */
  ack,
  summary,
});
