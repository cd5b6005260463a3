import type { DeliveryDiagnosis } from '@parley/protocol';
import type { TrailStep } from '../ui/trail.tsx';

/** The texts of a diagnosis: one sentence, the five steps of every message, and the details of each event. */

type Step = DeliveryDiagnosis['timeline'][number];

interface Sentence {
  title: string;
  text: string;
  arrived: boolean;
  /** A push would have helped. */
  push: boolean;
}

const counted = (count: number, one: string): string => (count === 1 ? `one ${one}` : `${count} ${one}s`);

const socketsOf = ({ timeline }: DeliveryDiagnosis): number =>
  Number(timeline.find(({ kind }) => kind === 'fanout')?.detail['sockets'] ?? 0);

/** Why there was no push, if there was none. */
function noPush({ timeline }: DeliveryDiagnosis): string | null {
  const step = timeline.find(({ kind, at }) => kind === 'push' && at === null);
  return step ? step.title.slice(step.title.indexOf(': ') + 2) : null;
}

const safe = (name: string): string => `The message is safe: ${name} gets it with the next connection.`;

export function sentenceOf(diagnosis: DeliveryDiagnosis, name: string): Sentence {
  const { verdict, member, summary } = diagnosis;
  const said = (arrived: boolean, title: string, text: string, push = false): Sentence => ({
    arrived,
    title,
    text,
    push,
  });
  const reason = noPush(diagnosis);
  switch (verdict) {
    case 'own_message':
      return said(true, `${name} sent it.`, 'The other clients of the sender get it like any other message.');
    case 'read':
      return said(true, `Yes. ${name} has read it.`, `The read mark is at ${member.lastReadSeq}.`);
    case 'delivered':
      return said(
        true,
        `Yes. A client of ${name} has confirmed it.`,
        `It is not read yet: the read mark is at ${member.lastReadSeq}.`,
      );
    case 'sent_to_socket':
      return said(
        true,
        `It went to ${counted(socketsOf(diagnosis), 'socket')} of ${name}.`,
        'No client has confirmed it yet. A client that lost the connection asks for it again.',
      );
    case 'pushed':
      return said(
        true,
        `A push to ${name} was accepted by the provider.`,
        `No client has confirmed the message yet. ${safe(name)}`,
      );
    case 'push_failed':
      return said(false, `Not yet. ${name} had no socket, and no push got through.`, safe(name));
    case 'connected_since':
      return said(
        false,
        `Not confirmed. A client of ${name} has connected since then.`,
        'The client should have synced by now. See its log, or trace its frames.',
      );
    case 'offline':
      return said(
        false,
        `Not yet. ${name} had no socket and was not pushed.`,
        `${safe(name)}${reason === null ? '' : ` There was no push: ${reason}.`}`,
        true,
      );
    case 'not_member':
      return said(
        false,
        `No. ${name} was not a member when it was sent.`,
        'Members who join later see it in the history.',
      );
    case 'deactivated':
      return said(
        false,
        `No. ${name} was deactivated when it was sent.`,
        'After a reactivation the user syncs it.',
      );
    default:
      return said(false, summary, '');
  }
}

export function stepsOf(diagnosis: DeliveryDiagnosis): TrailStep[] {
  const { message, member, timeline } = diagnosis;
  const confirmed = (member.lastDeliveredSeq ?? 0) >= message.seq;
  const read = (member.lastReadSeq ?? 0) >= message.seq;
  const sockets = socketsOf(diagnosis);
  const pushes = timeline.filter(({ kind, at }) => kind === 'push' && at !== null);
  const pushed = pushes.some(({ ok }) => ok);
  return [
    { name: 'Committed', state: 'done', note: `seq ${message.seq}` },
    {
      name: 'Member',
      state: member.was === null ? 'open' : member.was ? 'done' : 'failed',
      note:
        member.was === null ? 'not kept any more' : member.was ? 'when it was sent' : 'not when it was sent',
    },
    {
      name: 'Handed on',
      state: confirmed || sockets > 0 ? 'done' : 'failed',
      note: confirmed
        ? 'a client confirmed it'
        : sockets > 0
          ? `to ${counted(sockets, 'socket')}`
          : 'no socket',
    },
    {
      name: 'Push',
      state: pushed ? 'done' : pushes.length > 0 ? 'failed' : 'open',
      note: pushed ? 'accepted' : (pushes.at(-1)?.title ?? noPush(diagnosis) ?? 'not needed'),
    },
    {
      name: 'Read',
      state: read ? 'done' : 'open',
      note: member.lastReadSeq === null ? 'not a member now' : `up to ${member.lastReadSeq}`,
    },
  ];
}

const known = (value: unknown): value is string | number =>
  (typeof value === 'string' && value !== '') || typeof value === 'number';

const words: Partial<Record<Step['kind'], (detail: Step['detail']) => unknown[]>> = {
  member: ({ seq }) => [`seq ${String(seq)}`],
  committed: ({ seq }) => [`seq ${String(seq)}`],
  fanout: ({ nodes }) => (Array.isArray(nodes) && nodes.length > 0 ? [`on ${nodes.join(', ')}`] : []),
  socket: ({ sdk, node, closedAt, closeCode, sessionId }) => [
    sdk,
    `on ${String(node)}`,
    closedAt === null
      ? 'still open'
      : `closed ${String(closedAt)}${known(closeCode) ? ` (${closeCode})` : ''}`,
    sessionId,
  ],
  webhook: ({ attempts, lastStatus, lastError, webhookId }) => [
    counted(Number(attempts), 'attempt'),
    known(lastError) ? lastError : known(lastStatus) ? `answered ${lastStatus}` : '',
    webhookId,
  ],
  push: ({ result, reason, devices }) => [
    reason,
    result === undefined && known(devices) ? counted(Number(devices), 'device') : '',
  ],
  delivered: ({ lastDeliveredSeq }) => [`received up to ${String(lastDeliveredSeq)}`],
  read: ({ lastReadSeq }) => [`read up to ${String(lastReadSeq)}`],
};

/** What is known of a step, in one line. */
export const detailOf = (step: Step): string =>
  (words[step.kind]?.(step.detail) ?? []).filter(known).join(' · ');
