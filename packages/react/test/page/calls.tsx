import { createRoot } from 'react-dom/client';
import type { Client } from '@parley/client';
import type { Call, CallHandle, CallParticipantView, Calls, CallSnapshot } from '@parley/client/calls';
import { ParleyProvider } from '@parley/react';
import {
  CallControls,
  CallPreview,
  CallsProvider,
  CallStage,
  IncomingCall,
  JoinCall,
  SelfView,
  useCall,
} from '@parley/react/calls';
import type { CallStageProps, IncomingCallProps, SelfViewProps } from '@parley/react/calls';
import { useState } from 'react';
import '@fontsource-variable/geist';
import '@parley/react/styles.css';

/** Calls without a media server: what a call says is in the test's hands, and what is done to it is noted. */
const store = <T,>(value: T) => {
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    subscribe: (fn: () => void) => (listeners.add(fn), () => void listeners.delete(fn)),
    set: (next: T) => ((value = next), [...listeners].forEach((fn) => fn())),
  };
};
const track = (color: string): MediaStreamTrack => {
  const canvas = Object.assign(document.createElement('canvas'), { width: 320, height: 180 });
  const brush = canvas.getContext('2d')!;
  brush.fillStyle = color;
  brush.fillRect(0, 0, 320, 180);
  return canvas.captureStream().getVideoTracks()[0]!;
};
const people: Record<string, string> = {
  nora: 'Nora Lind',
  ines: 'Ines Rocha',
  sami: 'Sami Koskinen',
  priya: 'Priya Wadhwa',
};
const users = new Map(Object.entries(people).map(([id, name]) => [id, { id, name, imageUrl: null }]));
const item = { id: 'conv_1', type: 'group', name: 'Packing table', lastReadSeq: 0, unreadCount: 0 };
const client = {
  state: 'connected',
  stateStore: store('connected'),
  userId: 'nora',
  users: { store: store(users), find: (id: string) => users.get(id) },
  presence: { store: store(new Map()), watch: async () => undefined },
  conversations: store({ items: [item], unreadTotal: 0, hasMore: false }),
  on: () => () => undefined,
} as unknown as Client;

const person = (userId: string, more: Partial<CallParticipantView> = {}): CallParticipantView => ({
  userId,
  audioTrack: null,
  videoTrack: null,
  screenTrack: null,
  videoUnsupported: false,
  screenUnsupported: false,
  audioMuted: false,
  videoMuted: true,
  speaking: false,
  audioLevel: 0,
  inCall: true,
  isLocal: userId === 'nora',
  ...more,
});
const did: string[] = [];
/** What the browser asks its user, who has not answered. */
let asked: Promise<void> = Promise.resolve();
let answerCamera: () => void = () => undefined;
const holdCamera = () => void (asked = new Promise((done) => (answerCamera = done)));
const snapshot = store<CallSnapshot>({
  id: 'call_1',
  conversationId: 'conv_1',
  kind: 'video',
  state: 'incoming',
  call: { createdBy: 'ines', status: 'ringing', answeredAt: null } as CallSnapshot['call'],
  endedHere: null,
  participants: [person('ines'), person('nora')],
  activeSpeaker: null,
  network: { level: 5, reason: null },
  error: null,
});
const change = (more: Partial<CallSnapshot>) => snapshot.set({ ...snapshot.get(), ...more });
const note =
  (name: string, then: () => void = () => undefined) =>
  async (...given: unknown[]) => {
    did.push([name, ...given.map((one) => JSON.stringify(one))].join(' '));
    then();
  };
const me = (more: Partial<CallParticipantView>) =>
  change({ participants: snapshot.get().participants.map((p) => (p.isLocal ? { ...p, ...more } : p)) });
const answered = {
  createdBy: 'ines',
  status: 'ongoing',
  answeredAt: new Date().toISOString(),
} as unknown as CallSnapshot['call'];
const call = {
  id: 'call_1',
  get state() {
    return snapshot.get().state;
  },
  get: snapshot.get,
  subscribe: snapshot.subscribe,
  accept: note('accept', () => change({ state: 'connected', call: answered })),
  decline: note('decline', () => change({ state: 'ended', endedHere: 'declined_elsewhere' })),
  leave: note('leave', () => change({ state: 'ended' })),
  mute: note('mute', () => me({ audioMuted: true })),
  unmute: note('unmute', () => me({ audioMuted: false })),
  setCamera: async () => {
    did.push('setCamera');
    await asked;
  },
  setMicrophone: note('setMicrophone'),
  setSpeaker: note('setSpeaker'),
  shareScreen: note('shareScreen'),
  stopScreen: note('stopScreen'),
  attach: (video: HTMLVideoElement, userId: string, what: 'video' | 'screen') => {
    const one = snapshot.get().participants.find((p) => p.userId === userId);
    const shown = what === 'screen' ? one?.screenTrack : one?.videoTrack;
    video.srcObject = shown ? new MediaStream([shown]) : null;
    video.autoplay = true;
    return () => void (video.srcObject = null);
  },
} as unknown as CallHandle;
const device = (id: string, kind: string, label: string) => ({ id, kind, label });
const given = (globalThis as unknown as { options: { head?: boolean } }).options;
const live = store<readonly Call[]>([]);
/** A call goes on in the group, with so many people in it; none takes the button away. */
const goesOn = (ids: readonly string[]) =>
  live.set(
    ids.length === 0
      ? []
      : [
          {
            id: 'call_1',
            conversationId: 'conv_1',
            kind: 'video',
            status: 'active',
            participants: ids.map((userId) => ({ userId, state: 'joined' })),
          } as unknown as Call,
        ],
  );
let refuse: string | null = null;
const calls = {
  ...store([call]),
  live,
  join: async (id: string) => {
    did.push(`join ${id}`);
    if (refuse !== null) throw Object.assign(new Error('No.'), { code: refuse });
    change({ state: 'connected', call: answered });
    return call;
  },
  devices: {
    list: async () => [
      device('m1', 'mic', 'Built-in'),
      device('m2', 'mic', 'Headset'),
      device('c1', 'camera', ''),
    ],
    watch: () => () => undefined,
  },
} as unknown as Calls;

let tune: (props: Tuned) => void = () => undefined;
interface Tuned extends Omit<CallStageProps, 'call'> {
  incoming?: Omit<IncomingCallProps, 'onAnswered'>;
}
const Self = (props: SelfViewProps) => <SelfView {...props} corner={{ block: 'start' }} size={120} />;
const Controls: NonNullable<CallStageProps['slots']>['Controls'] = (props) => (
  <CallControls
    {...props}
    show={['leave', 'extra', 'mic']}
    extra={<button type="button">Raise a hand</button>}
  />
);
const buttons: IncomingCallProps['buttons'] = (usual, ringing) => [
  ...usual.filter(({ id }) => id !== 'voice'),
  { id: 'later', label: 'Later', onPress: () => void did.push(`later ${ringing.id}`) },
];
let showPreview: (shown: boolean) => void = () => undefined;
/** Devices without a device: what the browser is asked for is noted. */
const getUserMedia = async (wanted?: MediaStreamConstraints): Promise<MediaStream> => {
  did.push(`getUserMedia ${Object.keys(wanted ?? {}).join(' ')}`);
  if (wanted?.video) return new MediaStream([track('#3c4a5a')]);
  throw new DOMException('The test has no microphone.', 'NotAllowedError');
};
// Pages that are not served by https have none.
Object.defineProperty(navigator, 'mediaDevices', { value: { getUserMedia } });

function Page() {
  const current = useCall();
  const [preview, setPreview] = useState(false);
  const [{ incoming, ...stage }, setTuned] = useState<Tuned>({});
  const [small, setSmall] = useState(false);
  tune = setTuned;
  showPreview = setPreview;
  if (preview)
    return (
      <main style={{ padding: 20 }}>
        <CallPreview onJoin={(options) => void note('join')(options)} onCancel={() => setPreview(false)} />
      </main>
    );
  return (
    <main style={{ height: '100%' }}>
      {given.head ? (
        <header className="parley-thread-head">
          <h2>Packing table</h2>
          <JoinCall conversationId="conv_1" />
        </header>
      ) : null}
      <IncomingCall style={{ margin: 20 }} {...incoming} />
      {current ? <CallStage call={current.handle} small={small} onSmall={setSmall} {...stage} /> : null}
    </main>
  );
}
Object.assign(globalThis, {
  kit: {
    did,
    change,
    person,
    track,
    goesOn,
    holdCamera,
    answerCamera: () => answerCamera(),
    refuse: (code: string | null) => void (refuse = code),
    tune: (props: Tuned) => tune(props),
    parts: { Self, Controls, buttons },
    preview: (shown: boolean) => showPreview(shown),
  },
});
const root = document.getElementById('root')!;
root.style.fontFamily = "'Geist Variable', sans-serif";
createRoot(root).render(
  <ParleyProvider client={client} theme="light">
    <CallsProvider calls={calls}>
      <Page />
    </CallsProvider>
  </ParleyProvider>,
);
