import { createCalls } from '@parley/client/calls';
import type { CallHandle } from '@parley/client/calls';
import { lampPicture, lampSize } from './picture.ts';
import { bot } from './people.ts';
import { clientOf } from './session.ts';

/**
 * Pip answers, so that one person alone sees everything: typing, receipts, answers, pictures, calls. It runs in the
 * page. Every tab has one, and what it answers has an id that follows from the question, so the service takes it once.
 */

const thinkMs = 1_200;
const ringMs = 1_000;
const maxAnswered = 500;

interface Question {
  id: string;
  seq: number;
  text: string | null;
}

const helpText = `Things to try here:
• “picture”: I send one
• “edit”: I send something and change it
• “quote”: I answer with a quotation
• call me with the camera button above: I answer at once
• go offline, write to me, and come back`;

const small = [
  'Got it. Your points filled one after another: sent, delivered, read.',
  'Read it. Now change it: the arrow up in the empty field.',
  'Heard. Now cut your network above, write to me, and come back.',
  'Yes. Open “Two people” above, and be both sides of a conversation.',
  'Good. The panel “Code” has the line that did this.',
];

function answerTo({ text, seq }: Question): string {
  const said = (text ?? '').toLowerCase();
  if (/\b(help|what can|how)\b/.test(said)) return helpText;
  if (/\bcall\b/.test(said)) return 'Press the camera above: I answer, and show you your own camera.';
  if (/\bpicture|photo\b/.test(said)) return 'Here is one.';
  if (/\bedit\b/.test(said)) return 'Let me thnik about that.';
  if (text === null || text === '') return 'A file, thank you. It came straight from the storage.';
  return small[seq % small.length]!;
}

/** @returns the function that stops it. */
export function startBot(): () => void {
  const client = clientOf(bot.id, 'demo-bot/0.1.0');
  const calls = createCalls(client);
  const answered = new Set<string>();
  const timers = new Set<ReturnType<typeof setTimeout>>();
  const wait = (ms: number): Promise<void> =>
    new Promise((done) => {
      const timer = setTimeout(() => {
        timers.delete(timer);
        done();
      }, ms);
      timers.add(timer);
    });

  async function answer(conversationId: string, question: Question): Promise<void> {
    if (answered.has(question.id)) return;
    answered.add(question.id);
    if (answered.size > maxAnswered) answered.delete(answered.values().next().value!);
    const chat = client.conversations.open(conversationId);
    try {
      chat.markRead();
      chat.startTyping();
      await wait(thinkMs);
      const said = (question.text ?? '').toLowerCase();
      const attachments = /\bpicture|photo\b/.test(said)
        ? [(await chat.upload(await lampPicture(), lampSize)).id]
        : null;
      const { id } = await client.wire.http<{ id: string }>(
        'POST',
        `/conversations/${encodeURIComponent(conversationId)}/messages`,
        {
          body: {
            clientMsgId: `pip-${question.id}`,
            text: answerTo(question),
            ...(attachments ? { attachments } : {}),
            ...(/\bquote\b/.test(said) ? { replyTo: question.id } : {}),
          },
        },
      );
      if (/\bedit\b/.test(said)) {
        await wait(thinkMs);
        await chat.edit(id, { text: 'Let me think about that.' });
      }
    } catch {
      answered.delete(question.id); // The next one finds it unread and tries again.
    } finally {
      chat.stopTyping();
      chat.close();
    }
  }

  const isGroup = (id: string): boolean =>
    client.conversations.get().items.find((item) => item.id === id)?.type === 'group';
  /** In a group it speaks when it is spoken to. */
  const consider = (conversationId: string, question: Question, from: string | null): void => {
    if (from === null || from === bot.id) return;
    if (isGroup(conversationId) && !/\bpip\b/i.test(question.text ?? '')) return;
    void answer(conversationId, question);
  };
  const take = (call: CallHandle): void =>
    void wait(ringMs)
      // Without a microphone: one person in front of one machine would hear herself.
      .then(() => call.accept({ mic: false }))
      .catch(() => undefined);

  const offs = [
    client.on('message', ({ conversationId, message }) => {
      const { id, seq, text = null, senderId } = message;
      consider(conversationId, { id, seq, text }, senderId);
    }),
    calls.on('incoming', take),
    client.on('state', ({ state }) => {
      if (state !== 'connected') return;
      // What was written while no page was open.
      for (const { id, unreadCount, lastMessage } of client.conversations.get().items)
        if (unreadCount > 0 && lastMessage) consider(id, lastMessage, lastMessage.senderId);
    }),
  ];
  client.connect().catch(() => undefined);
  return () => {
    for (const off of offs) off();
    for (const timer of timers) clearTimeout(timer);
    calls.close();
    client.disconnect();
  };
}
