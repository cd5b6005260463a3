'use client';

export {
  CallsProvider,
  useCall,
  useCalls,
  useCallStrings,
  useDevices,
  useIncomingCall,
  useLiveCall,
} from './hooks.ts';
export type { CallsProviderProps, CallView, DevicesView } from './hooks.ts';
export { CallPreview } from './call-preview.tsx';
export type { CallPreviewProps } from './call-preview.tsx';
export { CallHead, CallStage, NetworkQuality } from './call-stage.tsx';
export type { CallStageProps, NetworkQualityProps } from './call-stage.tsx';
export { CallControls, useCallActions } from './controls.tsx';
export type { CallControlsProps, ControlName } from './controls.tsx';
export { DevicePicker } from './device-picker.tsx';
export type { DeviceKind, DevicePickerProps } from './device-picker.tsx';
export { JoinCall } from './join-call.tsx';
export type { JoinCallProps } from './join-call.tsx';
export { IncomingCall } from './incoming-call.tsx';
export type { IncomingButton, IncomingCallProps } from './incoming-call.tsx';
export { SelfView } from './self-view.tsx';
export type { SelfViewProps } from './self-view.tsx';
export { CallTile } from './tile.tsx';
export type { CallTileProps } from './tile.tsx';
export { englishCalls } from './strings.ts';
export type { CallStrings } from './strings.ts';
