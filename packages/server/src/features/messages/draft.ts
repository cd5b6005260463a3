import type { Input } from '@parley/protocol';
import type { Extras } from '../extras.ts';

export type SendInput = Input<'messages.send'>;

/** A message before it is appended. */
export interface Draft {
  readonly input: SendInput;
  /** null for a system message, and before the policy `sender`. */
  readonly sender: { no: number; id: string } | null;
  /** What is kept with the message beside its own columns. */
  readonly extras: Extras;
  /** A word list wants it reported. */
  readonly reported: boolean;
}
