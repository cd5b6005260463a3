import type { PushNotification } from '../../platform/push/port.ts';

export interface PushedMessage {
  conversationId: string;
  conversationType: 'direct' | 'group';
  conversationName: string | null;
  messageId: string;
  seq: number;
  /** null if the system sent the message. */
  senderId: string | null;
  senderName: string | null;
  text: string | null;
  /** JSON of the attachment objects. */
  attachments: string | null;
}

const bodyCharacters = 200;
/** How long a provider keeps the notification for a device that is off. */
const ttlSeconds = 7 * 86_400;

/** What a device shows of a message. A later notification of the same conversation replaces it. */
export const notificationOf = (message: PushedMessage, badge: number): PushNotification => ({
  title: titleOf(message),
  body: bodyOf(message),
  badge,
  collapseKey: message.conversationId,
  data: {
    type: 'message.new',
    conversationId: message.conversationId,
    messageId: message.messageId,
    seq: String(message.seq),
    ...(message.senderId === null ? {} : { senderId: message.senderId }),
  },
  priority: 'high',
  ttlSeconds,
});

function titleOf(message: PushedMessage): string {
  const sender = message.senderName ?? message.senderId ?? '';
  const group = message.conversationType === 'group' ? (message.conversationName ?? '') : '';
  return sender !== '' && group !== '' ? `${group} (${sender})` : group || sender;
}

function bodyOf(message: PushedMessage): string {
  if (message.text !== null) {
    const points = Array.from(message.text);
    return points.length <= bodyCharacters ? message.text : `${points.slice(0, bodyCharacters).join('')}…`;
  }
  const files = message.attachments === null ? 0 : (JSON.parse(message.attachments) as unknown[]).length;
  if (files === 0) return 'sent a message';
  return files === 1 ? 'sent a file' : `sent ${files} files`;
}
