'use client';

export { default as EmojiPicker } from './parts/emoji.tsx';
export type { EmojiPickerProps } from './parts/emoji.tsx';
