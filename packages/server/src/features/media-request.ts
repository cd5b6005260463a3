import type { AckData, CallFrameType, CallSource, ErrorCode, FrameData } from '@parley/protocol';

/** What a process asks the media node of a call, and what it is answered. */

/** A participant's place at the media node that hosts its call. */
export interface MediaSeat {
  env: number;
  call: number;
  user: number;
}

/** A media frame of a client; the one that finds a node for a test never reaches a node. */
type MediaFrameType = Exclude<CallFrameType, 'call.test'>;
export type MediaFrame = { [T in MediaFrameType]: { t: T; d: FrameData<T> } }[MediaFrameType];

/** The frame of a participant, with the user and the socket that it came from. */
export type FrameRequest = {
  [T in MediaFrameType]: MediaSeat & { method: T; d: FrameData<T> & { userId: string; session: string } };
}[MediaFrameType];

export type MediaRequest =
  | FrameRequest
  /** Forget the call. */
  | (MediaSeat & { method: 'close' })
  /** End the user's media. */
  | (MediaSeat & { method: 'drop' })
  /** Mute the user; answered with false if the user's media is not connected. */
  | (MediaSeat & { method: 'mute'; d: { source: CallSource } });

export type MediaValue = AckData<MediaFrameType> | boolean | null;

export type MediaAnswer =
  { value: MediaValue } | { error: { code: ErrorCode; message: string; retryAfterMs: number | null } };
