import type { Call, CallEndReason, CallMedia, CallSource } from '@parley/protocol';
import type { PresenceRegistry } from '../../platform/presence/port.ts';
import type { MediaLink } from './media-link.ts';
import type { MediaSeat } from '../media-request.ts';

declare module '../context.ts' {
  interface Services {
    calls: CallServices;
  }
}

/** What the operations on calls use of the running service. */
export interface CallServices {
  /** Tells which users have a socket. */
  connected: PresenceRegistry['connected'];
  /** Count calls for /metrics; to be called after the commit. */
  started(kind: Call['kind']): void;
  ended(reason: CallEndReason): void;
  /** Must be called after pushes were queued. */
  pushQueued(): void;
  iceServers(user: number, callId: string): CallMedia['iceServers'];
  /** Asks the media node of a call. */
  ask: MediaLink['ask'];
  media: {
    /** The call is over: its node forgets it. */
    close(node: string, call: number): void;
    /** Ends the user's media, even if the media node has not noticed yet that the user left. */
    drop(node: string, seat: MediaSeat): void;
    /** Returns false if the user is not connected to media. */
    mute(node: string, seat: MediaSeat, source: CallSource): Promise<boolean>;
  };
}
