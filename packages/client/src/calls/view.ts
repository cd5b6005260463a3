import type { ParleyError } from '../errors.ts';
import type { Call, CallProducer, CallSource, EndedHere } from '../types.ts';
import type { Remote } from './media.ts';
import type { NetworkQuality } from './network.ts';

/** The state of a call for display. */

export type CallState = 'incoming' | 'connecting' | 'connected' | 'reconnecting' | 'ended';

export interface CallParticipantView {
  userId: string;
  audioTrack: MediaStreamTrack | null;
  videoTrack: MediaStreamTrack | null;
  screenTrack: MediaStreamTrack | null;
  /** The camera, or the screen, is on, and this device cannot decode its codec. */
  videoUnsupported: boolean;
  screenUnsupported: boolean;
  audioMuted: boolean;
  videoMuted: boolean;
  speaking: boolean;
  /** 0 to 1. */
  audioLevel: number;
  inCall: boolean;
  isLocal: boolean;
}

export interface CallSnapshot {
  id: string;
  conversationId: string;
  kind: 'audio' | 'video';
  state: CallState;
  /** The call as the server describes it. */
  call: Call;
  /** Why the call is over on this device, although it may go on for others. */
  endedHere: EndedHere | null;
  participants: readonly CallParticipantView[];
  /** The user who speaks, or spoke last. */
  activeSpeaker: string | null;
  network: NetworkQuality;
  /** The last error that did not end the call, such as a camera that may not be used. */
  error: ParleyError | null;
}

type Heard = Pick<CallParticipantView, 'userId' | 'speaking' | 'audioLevel' | 'inCall'>;

/** The own participant, with what this device sends. */
export const localView = (
  heard: Heard,
  tracks: ReadonlyMap<string, MediaStreamTrack>,
  muted: Readonly<Record<CallSource, boolean>>,
): CallParticipantView => ({
  ...heard,
  isLocal: true,
  audioTrack: tracks.get('mic audio') ?? null,
  videoTrack: tracks.get('camera video') ?? null,
  screenTrack: tracks.get('screen video') ?? null,
  videoUnsupported: false,
  screenUnsupported: false,
  audioMuted: muted.mic || !tracks.has('mic audio'),
  videoMuted: muted.camera || !tracks.has('camera video'),
});

/** Another participant, with what is received and what cannot be shown here. */
export function remoteView(
  heard: Heard,
  remotes: readonly Remote[],
  unsupported: readonly CallProducer[],
): CallParticipantView {
  const find = (source: CallSource, kind: string) =>
    remotes.find(({ producer: p }) => p.userId === heard.userId && p.source === source && p.kind === kind);
  const [mic, camera, screen] = [find('mic', 'audio'), find('camera', 'video'), find('screen', 'video')];
  const dark = (source: CallSource) =>
    unsupported.find((p) => p.userId === heard.userId && p.source === source && p.kind === 'video');
  return {
    ...heard,
    isLocal: false,
    audioTrack: mic?.consumer.track ?? null,
    videoTrack: camera?.consumer.track ?? null,
    screenTrack: screen?.consumer.track ?? null,
    videoUnsupported: dark('camera')?.paused === false,
    screenUnsupported: dark('screen')?.paused === false,
    audioMuted: mic?.producer.paused ?? true,
    videoMuted: (camera?.producer ?? dark('camera'))?.paused ?? true,
  };
}
