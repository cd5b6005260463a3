/** The texts of calls. */
export interface CallStrings {
  callsWithVoice: string;
  callsWithVideo: string;
  incoming(name: string): string;
  decline: string;
  voice: string;
  answer: string;
  callWith(name: string): string;
  you: string;
  connecting: string;
  reconnecting: string;
  ringing: string;
  ended: string;
  endedBecause: Readonly<Record<string, string>>;
  /** The effect of answering, while this device is in a call and another call rings. */
  leavesOther: string;
  close: string;
  good: string;
  weak: string;
  lost: string;
  cameraOff: string;
  muted: string;
  speaking: string;
  screenOf(name: string): string;
  cannotShow: string;
  controls: string;
  microphone: string;
  camera: string;
  screen: string;
  leave: string;
  speaker: string;
  chooseDevices(kind: string): string;
  unnamedDevice(n: number): string;
  /** The button that joins the call of a conversation; `n` is the number of participants. */
  joinCall(n: number): string;
  joined(name: string): string;
  left(name: string): string;
  pin(name: string): string;
  pinned: string;
  makeSmall: string;
  makeLarge: string;
  hideSelf: string;
  showSelf: string;
  again: string;
  preview: string;
  asking: string;
  level: string;
  join: string;
  cancel: string;
  noDevice: string;
  denied(device: string): string;
  missing(device: string): string;
}

export const englishCalls: CallStrings = {
  callsWithVoice: 'calls you',
  callsWithVideo: 'calls you with video',
  incoming: (name) => `${name} calls`,
  decline: 'Decline',
  voice: 'Voice',
  answer: 'Answer',
  callWith: (name) => `Call with ${name}`,
  you: 'You',
  connecting: 'Connecting…',
  reconnecting: 'Reconnecting…',
  ringing: 'Ringing…',
  ended: 'The call has ended',
  endedBecause: {
    answered_elsewhere: 'Answered on another device',
    declined_elsewhere: 'Declined on another device',
    moved: 'The call continues on another device',
    removed: 'You were removed from the call',
    missed: 'Missed call',
  },
  leavesOther: 'If you answer, your current call ends.',
  close: 'Close',
  good: 'Good network',
  weak: 'Weak network',
  lost: 'No network',
  cameraOff: 'camera off',
  muted: 'muted',
  speaking: 'speaking',
  screenOf: (name) => `Screen of ${name}`,
  cannotShow: 'This device cannot show this picture',
  controls: 'Call controls',
  microphone: 'Microphone',
  camera: 'Camera',
  screen: 'Share the screen',
  leave: 'Leave the call',
  speaker: 'Speaker',
  chooseDevices: (kind) => `Choose: ${kind}`,
  unnamedDevice: (n) => `Device ${n}`,
  joinCall: (n) => (n === 1 ? 'Join, 1 is in' : `Join, ${n} are in`),
  joined: (name) => `${name} joined the call`,
  left: (name) => `${name} left the call`,
  pin: (name) => `Pin ${name}`,
  pinned: 'pinned',
  makeSmall: 'Make the call small',
  makeLarge: 'Make the call large',
  hideSelf: 'Hide yourself',
  showSelf: 'Show yourself',
  again: 'Call again',
  preview: 'Before you join',
  asking: 'Asking for permission…',
  level: 'Microphone level',
  join: 'Join',
  cancel: 'Cancel',
  noDevice: 'None found',
  denied: (device) => `${device}: not allowed. Allow it in the settings of this page in your browser.`,
  missing: (device) => `${device}: not found, or another application uses it.`,
};
