import { useSlot } from '../hooks/slots.ts';
import type { EmojiPickerProps } from './emoji.tsx';
import { later } from './later.ts';

const Usual = later(async () => ({ default: (await import('./emoji.tsx')).EmojiPicker }));

/** The picker of the provider's slots, or the kit's, which loads when it is first shown. */
export function EmojiPicker(props: EmojiPickerProps) {
  const Shown = useSlot<EmojiPickerProps>('EmojiPicker', Usual) ?? Usual;
  return <Shown {...props} />;
}
