import { ApiError, defaultRules } from '@parley/protocol';
import type { ConversationRules, ConversationRulesChange } from '@parley/protocol';
import { invalid } from '../../platform/api-errors.ts';
import { refusals } from '../../log/refusals.ts';
import { guards } from '../../log/sql/guards.ts';
import { flags } from '../sql/flags.ts';
import { moderates } from './access.ts';
import type { LockedAccess } from './access.ts';

/** conversations#rules: what the owner of a group decides about it. They bind users alone. */

/** A conversation's rules as they are kept: JSON; null where all is as by default. */
interface Ruled {
  rules: string | null;
}

/** Those that differ from the default. */
export const parseRules = ({ rules }: Ruled): ConversationRules =>
  rules === null ? {} : (JSON.parse(rules) as ConversationRules);

/** All of them. */
export const rulesOf = (conv: Ruled): typeof defaultRules & ConversationRules => ({
  ...defaultRules,
  ...parseRules(conv),
});

const names = [...(Object.keys(defaultRules) as (keyof typeof defaultRules)[]), 'defaultLevel'] as const;

/** Only what differs from the default is kept, in one order; what an append or a reaction must look at has a flag. */
export function setRules(conv: Ruled & { flags: number }, change: ConversationRulesChange): void {
  const wanted = { ...parseRules(conv), ...change };
  const byDefault: Record<string, unknown> = { ...defaultRules, defaultLevel: null };
  const kept = names.filter((name) => (wanted[name] ?? byDefault[name]) !== byDefault[name]);
  const rules: ConversationRules = Object.fromEntries(kept.map((name) => [name, wanted[name]]));
  if (rules.listed && rules.joining !== 'open')
    throw invalid('rules.listed', 'A listed group is open: set joining to open, or listed to false.');
  conv.rules = kept.length > 0 ? JSON.stringify(rules) : null;
  const flag = (bit: number, on: boolean) => (conv.flags = on ? conv.flags | bit : conv.flags & ~bit);
  flag(guards.slowMode, rules.slowModeSeconds !== undefined);
  flag(guards.posting, rules.posting !== undefined);
  flag(flags.noReactions, rules.reacting !== undefined);
}

/** Throws `restricted` where posting is for moderators, and the caller is none: messages have the same rule in append_rules.sql.ts. */
export function requirePosting(conv: { flags: number }, by: Pick<LockedAccess, 'role' | 'actor'>): void {
  if ((conv.flags & guards.posting) !== 0 && !moderates(by)) throw refusals.posting();
}

/** Throws `forbidden` where the rule is `moderators`, and the caller is none. */
export function requireAllowed(
  conv: Ruled,
  rule: 'pinning' | 'mentionEveryone',
  by: Pick<LockedAccess, 'role' | 'actor'>,
  refusal: { param?: string; message: string },
): void {
  if (!moderates(by) && rulesOf(conv)[rule] !== 'all') throw new ApiError('forbidden', refusal);
}
