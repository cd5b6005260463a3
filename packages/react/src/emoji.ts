'use client';

export { EmojiPicker } from './parts/emoji.tsx';
export type { EmojiPickerProps } from './parts/emoji.tsx';
