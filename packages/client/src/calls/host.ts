import type { Wire } from '../client-types.ts';
import type { ParleyError } from '../errors.ts';
import type { VideoCodec } from './media.ts';

export interface JoinOptions {
  /** A device; false: none. */
  mic?: string | boolean;
  camera?: string | boolean;
  /** What the camera's picture is sent in, where the service and this browser know it; VP8 otherwise. */
  codec?: VideoCodec;
  /** No UDP; only relays: for networks that need it, and to test them. */
  tcp?: boolean;
  relay?: boolean;
}

export interface CallHost {
  wire: Wire;
  me(): string;
  /** True while the chat socket is there. */
  online(): boolean;
  onError(error: ParleyError): void;
  /** It is over here. */
  onEnd(callId: string): void;
  /** It takes part: a reload of the page may bring it back. */
  onJoined(callId: string): void;
}
