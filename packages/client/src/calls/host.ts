import type { Wire } from '../client-types.ts';
import type { ParleyError } from '../errors.ts';
import type { CallSource } from '../types.ts';
import type { VideoCodec } from './media.ts';

export interface JoinOptions {
  /** A device id; true for the default device, false for none. */
  mic?: string | boolean;
  camera?: string | boolean;
  /** The codec of the camera's picture, if the service and this browser support it; otherwise VP8 is used. */
  codec?: VideoCodec;
  /** `tcp` avoids UDP, `relay` uses only relays: for networks that need it, and to test them. */
  tcp?: boolean;
  relay?: boolean;
}

/** A camera or screen that this device cannot show. */
export interface UnsupportedSource {
  callId: string;
  userId: string;
  source: CallSource;
}

export interface CallHost {
  wire: Wire;
  me(): string;
  /** True while the chat socket is connected. */
  online(): boolean;
  onError(error: ParleyError): void;
  onUnsupported(source: UnsupportedSource): void;
  /** The call is over on this device. */
  onEnd(callId: string): void;
  /** This device takes part in the call: after a reload of the page it can be joined again. */
  onJoined(callId: string): void;
}
