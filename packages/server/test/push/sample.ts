import type { PushNotification } from '../../src/platform/push/port.ts';

export const notification: PushNotification = {
  title: 'Ada Lovelace',
  body: 'Привет, 👋 and good morning',
  badge: 7,
  collapseKey: 'conv_01hzy8m3q6v7w8x9y0abcdefgh',
  data: { type: 'message.new', conversationId: 'conv_01hzy8m3q6v7w8x9y0abcdefgh' },
  priority: 'high',
  ttlSeconds: 3600,
};
