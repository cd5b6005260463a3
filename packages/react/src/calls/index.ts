'use client';

export { CallsProvider, useCall, useCalls, useCallStrings, useDevices, useIncomingCall } from './hooks.ts';
export type { CallsProviderProps, CallView, DevicesView } from './hooks.ts';
export { CallHead, CallStage } from './call-stage.tsx';
export type { CallStageProps } from './call-stage.tsx';
export { CallControls, useCallActions } from './controls.tsx';
export type { CallControlsProps } from './controls.tsx';
export { IncomingCall } from './incoming-call.tsx';
export type { IncomingCallProps } from './incoming-call.tsx';
export { CallTile } from './tile.tsx';
export type { CallTileProps } from './tile.tsx';
export { englishCalls } from './strings.ts';
export type { CallStrings } from './strings.ts';
