'use client';

export { createWire, Wire } from './wire.ts';
export type { WireFrame } from './wire.ts';
export { WirePanel } from './wire-panel.tsx';
export type { WirePanelProps } from './wire-panel.tsx';
export { SequenceView } from './sequence-view.tsx';
export type { SequencePerson, SequenceViewProps } from './sequence-view.tsx';
export { englishWire } from './strings.ts';
export type { WireStrings } from './strings.ts';
