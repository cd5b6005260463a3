import { forwardRef, useState } from 'react';
import type { ComponentPropsWithoutRef, CSSProperties } from 'react';
import { useClient } from '../hooks/context.ts';
import { useName, usePresence, useUser } from '../hooks/people.ts';
import { useRoster } from '../hooks/roster.ts';
import { useSlot } from '../hooks/slots.ts';
import { cx } from './tools.ts';

/** A person has one colour everywhere: the hue is a hash of the id. */
function hueOf(id: string): number {
  let hash = 0;
  for (let i = 0; i < id.length; i++) hash = (hash * 31 + id.charCodeAt(i)) | 0;
  return (hash >>> 0) % 360;
}

let segmenter: Intl.Segmenter | undefined;
const firstOf = (word: string): string => {
  if (typeof Intl.Segmenter === 'undefined') return [...word][0] ?? '';
  segmenter ??= new Intl.Segmenter(); // Making one takes longer than a row does.
  return segmenter.segment(word)[Symbol.iterator]().next().value?.segment ?? '';
};
export function initialsOf(name: string): string {
  const words = name.trim().split(/\s+/).filter(Boolean);
  const chosen = words.length > 1 ? [words[0]!, words.at(-1)!] : words;
  return chosen.map(firstOf).join('').toUpperCase();
}

export interface AvatarProps extends ComponentPropsWithoutRef<'span'> {
  /** Decides the colour. */
  id: string;
  name: string;
  src?: string | null | undefined;
  /** In pixels; without it `--parley-avatar-size` of an ancestor, or 40. */
  size?: number | undefined;
  online?: boolean | undefined;
}

const sized = (size: number | undefined): CSSProperties =>
  (size === undefined ? {} : { '--parley-avatar-size': `${size}px` }) as CSSProperties;

/** A picture or initials; beside a name, therefore hidden from screen readers unless it gets an `aria-label`. */
export const Avatar = forwardRef<HTMLSpanElement, AvatarProps>(function Avatar(props, ref) {
  const { id, name, src, size, online, className, style, children, ...rest } = props;
  const [broken, setBroken] = useState<string | null>(null);
  const shape = { ...sized(size), '--parley-hue': hueOf(id), ...style } as CSSProperties;
  const named = rest['aria-label'] === undefined ? { 'aria-hidden': true } : { role: 'img' };
  return (
    <span ref={ref} className={cx('parley-avatar', className)} style={shape} {...named} {...rest}>
      {src && src !== broken ? (
        <img src={src} alt="" onError={() => setBroken(src)} />
      ) : (
        <span>{initialsOf(name)}</span>
      )}
      {online ? <i className="parley-presence" data-state="online" /> : null}
      {children}
    </span>
  );
});

/** The avatar of a user, with what the service knows about the user. */
export function UserAvatar({
  userId,
  presence,
  ...rest
}: {
  userId: string;
  presence?: boolean;
  size?: number;
}) {
  const user = useUser(userId);
  const name = useName(userId);
  const online = usePresence(presence ? [userId] : []).get(userId)?.online;
  const Shown = useSlot<AvatarProps>('Avatar', Avatar);
  return Shown ? <Shown id={userId} name={name} src={user?.imageUrl} online={online} {...rest} /> : null;
}

export interface GroupAvatarProps {
  conversationId: string;
  name: string;
  size?: number;
  /** False: the members are not fetched yet. */
  seen?: boolean;
}

/** Two of the people in a group; the initials of its name until the members are known. */
export function GroupAvatar({ conversationId, name, size, seen = true }: GroupAvatarProps) {
  const { userId: me } = useClient();
  const members = useRoster(seen ? conversationId : null);
  const Shown = useSlot<AvatarProps>('Avatar', Avatar);
  // The others; oneself only where there is one other.
  const others = members.filter(({ userId }) => userId !== me);
  const [first, second] = others.length > 1 ? others : members;
  if (!first || !second) return Shown ? <Shown id={conversationId} name={name} size={size} /> : null;
  return (
    <span className="parley-avatar-pair" style={sized(size)}>
      <UserAvatar userId={first.userId} />
      <UserAvatar userId={second.userId} />
    </span>
  );
}
