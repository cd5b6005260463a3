import type { ConversationRules, EnvironmentSettings, NotificationLevel } from '@parley/protocol';
import { mentionOf } from './extras.ts';

/** Which messages a member is pushed (mentions#levels). Levels are evaluated when they are read: nothing runs when `none` ends. */

/** The columns of a member: `muted` is the level `none`, until `mutedUntil` if that is set; `level` holds otherwise. */
export interface LevelRow {
  muted: boolean;
  mutedUntil: string | null;
  /** Null: the default. */
  level: number | null;
}

export type DefaultLevel = EnvironmentSettings['defaultLevel'];

/** What holds for members of a conversation who chose no level: its rule, or else what the environment says. */
export const defaultLevelOf = ({ rules }: { rules: string | null }, byDefault: DefaultLevel): DefaultLevel =>
  (rules === null ? null : (JSON.parse(rules) as ConversationRules).defaultLevel) ?? byDefault;

export const levelNumbers = { all: 1, mentions: 2 } as const;

export interface Level {
  level: NotificationLevel;
  /** When `none` ends; null if it has no end, and for other levels. */
  until: string | null;
}

export function levelOf(row: LevelRow, byDefault: DefaultLevel, now: number): Level {
  if (row.muted && (row.mutedUntil === null || Date.parse(row.mutedUntil) > now))
    return { level: 'none', until: row.mutedUntil };
  const level = row.level === null ? byDefault : row.level === levelNumbers.mentions ? 'mentions' : 'all';
  return { level, until: null };
}

/** Whether a push says that the message mentions the user. `here` is for those who are there: it is no reason to push. */
export function isPushedMention(extras: string | null, user: number): boolean {
  const mention = mentionOf(extras, user);
  return mention === 'user' || mention === 'everyone';
}

export const isPushed = (level: NotificationLevel, extras: string | null, user: number): boolean =>
  level === 'all' || (level === 'mentions' && isPushedMention(extras, user));
