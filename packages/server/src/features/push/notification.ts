import type { CallKind, EnvironmentSettings } from '@parley/protocol';
import type { PushNotification } from '../../platform/push/port.ts';
import type { MessageRow } from '../sql/message-reader.ts';

/** What a push may show of names and text. The ids in its data are the same for all. */
export type PushContent = EnvironmentSettings['pushContent'];

type Shown = Pick<MessageRow, 'cid' | 'id' | 'seq' | 'senderId' | 'text' | 'attachments'>;

export interface PushedMessage extends Shown {
  conversationType: 'direct' | 'group';
  conversationName: string | null;
  senderName: string | null;
  /** What its poll asks. */
  question: string | null;
  /** It names the user, or everyone. */
  mention: boolean;
}

const bodyCharacters = 200;
/** How long a provider keeps the notification for a device that is off. */
const ttlSeconds = 7 * 86_400;

/** What a device shows of a message. A later notification of the same conversation replaces it. */
export const notificationOf = (
  message: PushedMessage,
  badge: number,
  content: PushContent,
): PushNotification => ({
  ...(content === 'none'
    ? { title: 'New message', body: '' }
    : { title: titleOf(message), body: content === 'full' ? bodyOf(message) : 'sent a message' }),
  badge,
  collapseKey: message.cid,
  data: {
    type: 'message.new',
    conversationId: message.cid,
    messageId: message.id,
    seq: String(message.seq),
    ...(message.senderId === null ? {} : { senderId: message.senderId }),
    ...(message.mention ? { mention: 'true' } : {}),
  },
  priority: 'high',
  ttlSeconds,
});

export interface PushedCall {
  callId: string;
  kind: CallKind;
  conversationId: string;
  conversationType: 'direct' | 'group';
  conversationName: string | null;
  callerId: string;
  callerName: string | null;
}

/** push#calls. That of a missed call replaces the one of the incoming call. */
export const callNotification = (
  call: PushedCall,
  type: 'incoming' | 'missed',
  ttlSeconds: number,
  badge: number,
  content: PushContent,
): PushNotification => {
  const what = `${type === 'incoming' ? 'Incoming' : 'Missed'} ${call.kind} call`;
  const title = titleOf({ ...call, senderId: call.callerId, senderName: call.callerName });
  return {
    ...(content === 'none' ? { title: what, body: '' } : { title, body: what }),
    badge,
    collapseKey: call.callId,
    data: {
      type: `call.${type}`,
      callId: call.callId,
      conversationId: call.conversationId,
      kind: call.kind,
      callerId: call.callerId,
    },
    call: type,
    priority: 'high',
    ttlSeconds,
  };
};

type Titled = Pick<PushedMessage, 'conversationType' | 'conversationName' | 'senderId' | 'senderName'>;

function titleOf(message: Titled): string {
  const sender = message.senderName ?? message.senderId ?? '';
  const group = message.conversationType === 'group' ? (message.conversationName ?? '') : '';
  return sender !== '' && group !== '' ? `${group} (${sender})` : group || sender;
}

function bodyOf(message: PushedMessage): string {
  const text = message.text ?? message.question;
  if (text !== null) {
    const points = Array.from(text);
    return points.length <= bodyCharacters ? text : `${points.slice(0, bodyCharacters).join('')}…`;
  }
  const files = message.attachments === null ? 0 : (JSON.parse(message.attachments) as unknown[]).length;
  if (files === 0) return 'sent a message';
  return files === 1 ? 'sent a file' : `sent ${files} files`;
}
