/** The texts of the developer tools. `format` describes the frames. */
export interface WireStrings {
  wire: string;
  frames: string;
  frameCount(shown: number, all: number): string;
  ways: Readonly<Record<'out' | 'in' | 'none', string>>;
  filter: string;
  filterBy: string;
  heartbeats: string;
  pause: string;
  clear: string;
  nothing: string;
  copied: string;
  outbox(waiting: number): string;
  files: string;
  hidden: string;
  notNumbered: string;
  numbered(seq: number): string;
  lastMessage: string;
  /** Kept on the device, committed, delivered, read. */
  steps: readonly [string, string, string, string];
  reached(yes: boolean): string;
  sequence: string;
  sequenceAbout: string;
  service: string;
  nothingSaid: string;
  waits: string;
  asTable: string;
  columns: readonly [string, string, string];
  passage(seq: number | null, by: string, heard: readonly string[], not: readonly string[]): string;
}

const names = (list: readonly string[]): string => list.join(' and ');

export const englishWire: WireStrings = {
  wire: 'Wire',
  frames: 'Frames',
  frameCount: (shown, all) =>
    shown === all ? `${all} ${all === 1 ? 'frame' : 'frames'}` : `${shown} of ${all} frames`,
  ways: { out: 'sent', in: 'received', none: 'the connection' },
  filter: 'Filter',
  filterBy: 'Filter by type',
  heartbeats: 'Heartbeats',
  pause: 'Pause',
  clear: 'Clear',
  nothing: 'No frames yet',
  copied: 'The frame was copied.',
  outbox: (waiting) => (waiting === 1 ? 'Outbox: one message waits' : `Outbox: ${waiting} messages wait`),
  files: 'Files',
  hidden: 'hidden',
  notNumbered: 'not numbered yet',
  numbered: (seq) => `seq ${seq}`,
  lastMessage: 'State of the last message',
  steps: ['on this device', 'committed', 'delivered', 'read'],
  reached: (yes) => (yes ? ': yes' : ': not yet'),
  sequence: 'Order of the server',
  sequenceAbout:
    'each message passes the middle line once: the server commits and numbers it, then sends it to the others',
  service: 'Parley',
  nothingSaid: 'No messages yet.',
  waits: 'waits',
  asTable: 'As a table',
  columns: ['Number', 'By', 'Received by'],
  passage: (seq, by, heard, not) =>
    seq === null
      ? `${by}’s next message waits`
      : [
          `${seq} by ${by}`,
          ...(heard.length > 0 ? [`received by ${names(heard)}`] : []),
          ...(not.length > 0 ? [`not yet received by ${names(not)}`] : []),
        ].join(', '),
};
