import type { CallMedia, CallSource } from '@parley/protocol';
import type { PresenceRegistry } from '../../platform/presence/port.ts';
import type { MediaLink } from './media-link.ts';

/** A participant's place at the media node that hosts its call. */
export interface MediaSeat {
  env: number;
  call: number;
  user: number;
}

/** What the operations of calls need of the running service. */
export interface CallServices {
  /** Who has a socket. */
  connected: PresenceRegistry['connected'];
  /** Pushes were queued. */
  pushQueued(): void;
  iceServers(user: number, callId: string): CallMedia['iceServers'];
  /** Asks the media node of a call. */
  ask: MediaLink['ask'];
  media: {
    /** The call is over: its node forgets it. */
    close(node: string, call: number): void;
    /** Its media ends, also where it has not noticed yet that it left. */
    drop(node: string, seat: MediaSeat): void;
    /** False where it is not connected to media. */
    mute(node: string, seat: MediaSeat, source: CallSource): Promise<boolean>;
  };
}
