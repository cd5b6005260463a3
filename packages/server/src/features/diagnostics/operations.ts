import { limits } from '@parley/protocol';
import type { DeliveryDiagnosis, Input, TimelineStep } from '@parley/protocol';
import { notFound } from '../../platform/api-errors.ts';
import type { Context, Operation } from '../context.ts';
import { mentionOf } from '../extras.ts';
import { defaultLevelOf, isPushed, levelOf } from '../levels.ts';
import type { Level } from '../levels.ts';
import { existingUser } from '../users/operations.ts';
import * as sql from './sql.ts';
import type { Membership, MessageFacts, Move, PushFacts, SocketFacts, WebhookFacts } from './sql.ts';

/** Explains why a user did, or did not, get a message, from what is stored and without the message's text. */

type Verdict = DeliveryDiagnosis['verdict'];

type Facts = Awaited<ReturnType<typeof factsOf>>;

async function factsOf(ctx: Context, input: Input<'diagnostics.delivery'>) {
  const { db, env, services } = ctx;
  const [message, row] = await Promise.all([
    sql.messageFacts(db, env.no, input.messageId),
    existingUser(ctx, db, input.userId),
  ]);
  if (!message) throw notFound('Message');
  const { conv, seq, createdAt } = message;
  const [member, moves, sockets, later, attempts, means, deliveries] = await Promise.all([
    sql.membership(db, env.no, conv, row.no),
    sql.moves(db, env.no, conv, row.no),
    sql.socketsAt(db, env.no, row.no, createdAt),
    sql.firstSocketAfter(db, env.no, row.no, createdAt),
    sql.pushAttempts(db, env.no, conv, seq, row.no),
    sql.pushMeans(db, env.no, row.no),
    sql.webhookDeliveries(db, env.no, message),
  ]);
  const now = services.clock.now();
  const ago = (ms: number): string => new Date(now - ms).toISOString();
  return {
    message,
    user: { no: row.no, id: row.id, deactivatedAt: row.deactivated_at },
    member,
    moves,
    /** The user's sockets that were open when the message was committed. */
    sockets,
    /** The first socket that the user opened afterwards. */
    later,
    attempts,
    means,
    deliveries,
    /** As it is now; null if the user is not a member. */
    level: member ? levelOf(member, defaultLevelOf(member, env.settings.defaultLevel), now) : null,
    /** What is older is no longer stored. */
    kept: {
      membersSince: ago(await services.storage.retentionMs(env.no)),
      sessionsSince: ago(limits.requestLogDays * dayMs),
      pushSince: ago(limits.requestLogDays * dayMs),
      webhooksSince: ago(limits.webhookReplayHours * 3_600_000),
    },
  };
}

export const delivery: Operation<Context, 'diagnostics.delivery'> = async (ctx, input) => {
  const facts = await factsOf(ctx, input);
  const { message, user, member, level, kept } = facts;
  const { conv: _conv, sender: _sender, extras: _extras, ...shown } = message;
  const was = wasMember(facts);
  const verdict = verdictOf(facts, was);
  return {
    message: shown,
    user: { id: user.id, deactivatedAt: user.deactivatedAt },
    verdict,
    summary: sentences[verdict],
    member: {
      was,
      is: member !== undefined,
      muted: level && level.level === 'none',
      level: level && level.level,
      mutedUntil: level && level.until,
      mention: mentionOf(message.extras, user.no),
      lastReadSeq: member?.lastReadSeq ?? null,
      lastDeliveredSeq: member?.lastDeliveredSeq ?? null,
    },
    timeline: timelineOf(facts, was),
    kept,
  };
};

const dayMs = 86_400_000;

/**
 * Whether the user was a member when the message was committed: by the last membership event before the message, else
 * the first after it, else the present membership. Null if the events that would tell are no longer stored.
 */
function wasMember({ message, moves, member, kept }: Facts): boolean | null {
  const before = moves.filter((m) => m.seq < message.seq).at(-1);
  if (before) return before.type !== 'member.removed';
  const after = moves.find((m) => m.seq > message.seq);
  if (after) return after.type === 'member.removed';
  if (member) return true;
  // Stored events do not mention a user who left before they begin.
  return message.createdAt < kept.membersSince ? null : false;
}

function verdictOf(facts: Facts, was: boolean | null): Verdict {
  const { message, user, member, sockets, later, attempts } = facts;
  if (message.sender === user.no) return 'own_message';
  if (was === false) return 'not_member';
  if (member && member.lastReadSeq >= message.seq) return 'read';
  if (member && member.lastDeliveredSeq >= message.seq) return 'delivered';
  if (user.deactivatedAt !== null && user.deactivatedAt <= message.createdAt) return 'deactivated';
  if (sockets.length > 0) return 'sent_to_socket';
  if (attempts.some((a) => a.result === 'sent')) return 'pushed';
  if (attempts.length > 0) return 'push_failed';
  return later ? 'connected_since' : 'offline';
}

const sentences: Record<Verdict, string> = {
  own_message: 'The user sent the message.',
  not_member: 'The user was not a member when the message was sent; who joins later sees it in the history.',
  deactivated: 'The user was deactivated when the message was sent.',
  read: 'The user has read it: its read mark is at or above the message.',
  delivered: 'A client of the user has confirmed it: the delivery mark is at or above the message.',
  sent_to_socket: 'It was sent to the sockets that the user had, and no client has confirmed it.',
  pushed:
    'The user had no socket; a push was accepted by the provider, and no client has confirmed the message.',
  push_failed: 'The user had no socket, and no push got through.',
  connected_since:
    'The user had no socket; a client connected later, should have synced, and has not confirmed it.',
  offline: 'The user had no socket and was not pushed, and no client has connected since.',
};

function timelineOf(facts: Facts, was: boolean | null): TimelineStep[] {
  const { message, member, moves, sockets, later, deliveries, attempts } = facts;
  const own = message.sender === facts.user.no;
  const steps: TimelineStep[] = [
    ...moves.map((move) => step(move.at, 'member', moveTitles[move.type], null, { seq: move.seq })),
    step(message.createdAt, 'committed', 'The message was committed', true, { seq: message.seq }),
    fanout(message, sockets, was),
    ...sockets.map((s) => socketStep(s, 'A socket was open')),
    ...(later ? [socketStep(later, 'A client connected after it')] : []),
    ...deliveries.map(webhookStep),
    ...attempts.map(pushStep),
    ...(attempts.length === 0 && !own ? [noPush(facts, was)] : []),
  ];
  if (message.editedAt !== null) steps.push(step(message.editedAt, 'edited', 'It was edited last', null));
  if (message.deletedAt !== null) steps.push(step(message.deletedAt, 'deleted', 'It was deleted', null));
  // Steps without a time come last.
  const time = (one: TimelineStep): number => (one.at === null ? Infinity : Date.parse(one.at));
  steps.sort((a, b) => (time(a) < time(b) ? -1 : Number(time(a) > time(b))));
  if (member && !own) steps.push(...marks(member, message.seq));
  return steps;
}

const step = (
  at: string | null,
  kind: TimelineStep['kind'],
  title: string,
  ok: boolean | null,
  detail: Record<string, unknown> = {},
): TimelineStep => ({ at, kind, title, ok, detail });

const moveTitles: Record<Move['type'], string> = {
  'conversation.created': 'The user is a member from the beginning',
  'member.added': 'The user was added',
  'member.removed': 'The user was removed, or left',
};

/** Every node that had sockets of members sent the message to them right after the commit. */
function fanout(message: MessageFacts, sockets: SocketFacts[], was: boolean | null): TimelineStep {
  if (was === false)
    return step(message.createdAt, 'fanout', 'It was not sent to the user, who was no member', false);
  const title =
    sockets.length === 0
      ? 'There was no socket of the user to send it to'
      : `It was sent to ${sockets.length === 1 ? 'the socket' : `${sockets.length} sockets`} of the user`;
  const nodes = [...new Set(sockets.map((s) => s.node))];
  return step(message.createdAt, 'fanout', title, sockets.length > 0, { sockets: sockets.length, nodes });
}

const socketStep = ({ id: sessionId, openedAt, ...socket }: SocketFacts, title: string): TimelineStep =>
  step(openedAt, 'socket', title, null, { sessionId, ...socket });

function webhookStep({ id, endpoint, type, status, createdAt, attempts }: WebhookFacts): TimelineStep {
  const last = attempts.at(-1);
  return step(createdAt, 'webhook', `The webhook ${type} ${statusWords[status]}`, status === 'succeeded', {
    webhookId: endpoint,
    deliveryId: id,
    status,
    attempts: attempts.length,
    lastStatus: last?.status ?? null,
    lastError: last?.error ?? null,
  });
}
const statusWords: Record<string, string> = {
  pending: 'waits',
  succeeded: 'was delivered',
  failed: 'was not delivered',
};

const pushStep = ({ at, provider, result, reason }: PushFacts): TimelineStep =>
  step(at, 'push', `${provider}: ${pushWords[result] ?? result}`, result === 'sent', {
    provider,
    result,
    reason,
  });
const pushWords: Record<string, string> = {
  sent: 'the push was accepted',
  dead: 'the device’s token is dead',
  rejected: 'the push was rejected',
  retry: 'the push is tried again',
  failed: 'the push failed for good',
};

const until = (level: Level | null): string => (level?.until == null ? '' : ` until ${level.until}`);

/** The first reason why no push was sent, judged by how things are now. */
function noPush({ level, message, means, sockets, user }: Facts, was: boolean | null): TimelineStep {
  const reasons: [boolean, string][] = [
    [was === false, 'the user was no member'],
    [means.mode === 'off', 'pushes are off in this environment'],
    [user.deactivatedAt !== null, 'the user is deactivated'],
    [level?.level === 'none', `the user has muted the conversation${until(level)}`],
    [
      level !== null && !isPushed(level.level, message.extras, user.no),
      mentionOf(message.extras, user.no) === 'here'
        ? 'the user is pushed mentions only, and `here` is for those who are there'
        : 'the user is pushed mentions only, and the message does not mention it',
    ],
    [means.mode === 'webhook', 'this environment pushes by itself, on the webhook notification.needed'],
    [sockets.length > 0, 'the user had a socket'],
    [means.devices === 0, 'the user has no device'],
    [means.reachable === 0, 'there are no credentials for the providers of its devices'],
  ];
  const reason = reasons.find(([holds]) => holds)?.[1] ?? 'none is kept, or none was needed any more';
  return step(null, 'push', `There was no push: ${reason}`, null, { ...means });
}

const marks = ({ lastDeliveredSeq, lastReadSeq }: Membership, seq: number): TimelineStep[] => [
  lastDeliveredSeq >= seq
    ? step(null, 'delivered', 'A client has confirmed it', true, { lastDeliveredSeq })
    : step(null, 'delivered', 'No client has confirmed it', false, { lastDeliveredSeq }),
  lastReadSeq >= seq
    ? step(null, 'read', 'It was read', true, { lastReadSeq })
    : step(null, 'read', 'It was not read', false, { lastReadSeq }),
];
