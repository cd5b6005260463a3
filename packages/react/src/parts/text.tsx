import { Fragment } from 'react';
import type { ReactNode } from 'react';
import type { Mention } from '@parley/client';

const address = /\bhttps?:\/\/[^\s<>"]+/g;
const trailing = /[.,;:!?'’”»)\]]+$/;
const maxLinks = 50;

/** A text with its http and https addresses as links. Nothing else becomes one, and the text is never read as HTML. */
export function linked(text: string): ReactNode {
  const parts: ReactNode[] = [];
  let from = 0;
  for (const match of text.matchAll(address)) {
    if (parts.length > 2 * maxLinks) break;
    const [found] = match;
    // A bracket that the address itself opened belongs to it, as in those of Wikipedia.
    const end = found.includes('(') ? /[.,;:!?'’”»\]]+$/ : trailing;
    const url = found.replace(end, '');
    if (!URL.canParse(url)) continue;
    parts.push(
      text.slice(from, match.index),
      <a key={match.index} href={url} target="_blank" rel="noopener noreferrer nofollow">
        {url.replace(/^https?:\/\/(www\.)?/, '').replace(/\/$/, '')}
      </a>,
    );
    from = match.index + url.length;
  }
  return parts.length === 0 ? text : [...parts, text.slice(from)];
}

/** A text with its links, in which mentions stand out, those of this user most. */
export function marked(text: string, mentions: readonly Mention[] = [], me: string | null = null): ReactNode {
  const parts: ReactNode[] = [];
  let from = 0;
  for (const { type, userId, offset, length } of mentions) {
    if (offset === undefined || length === undefined) continue;
    parts.push(
      <Fragment key={from}>{linked(text.slice(from, offset))}</Fragment>,
      <b
        key={`@${offset}`}
        className="parley-mention"
        data-me={type !== 'user' || userId === me || undefined}
      >
        {text.slice(offset, offset + length)}
      </b>,
    );
    from = offset + length;
  }
  return parts.length === 0
    ? linked(text)
    : [...parts, <Fragment key={from}>{linked(text.slice(from))}</Fragment>];
}

const onlyEmoji =
  /^(?:\p{Extended_Pictographic}(?:\p{Emoji_Modifier}|\uFE0F|\u200D\p{Extended_Pictographic})*\s*){1,3}$/u;
/** Up to three emoji and nothing else: they are shown large, without a bubble. */
export const isEmojiOnly = (text: string): boolean => text.length <= 60 && onlyEmoji.test(text.trim());
