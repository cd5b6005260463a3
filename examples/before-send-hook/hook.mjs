// Decides on messages before they are stored: rejects advertising, rewrites telephone numbers, allows the rest.
//   HOOK_SECRET=whsec_… PORT=3002 npm start        (the secret is shown when the hook is set)
import { createServer } from 'node:http';
import { hookHandler } from '@parley/server-sdk';

const { HOOK_SECRET, PORT = '3002' } = process.env;
const advertising = /\b(casino|crypto giveaway)\b/i;
const telephone = /\+?\d[\d ()-]{7,}\d/g;

const handle = hookHandler({
  secret: HOOK_SECRET,
  beforeSend({ conversation, senderId, edit, message }) {
    console.log(`${edit ? 'edit' : 'message'} of ${senderId ?? 'the system'} to ${conversation.id}`);
    const text = message.text ?? '';
    if (advertising.test(text)) return { action: 'reject', reason: 'Advertising is not welcome here.' };
    const hidden = text.replace(telephone, '(number hidden)');
    if (hidden !== text) return { action: 'rewrite', text: hidden };
    return { action: 'allow' };
  },
});

const server = createServer(handle);
server.listen(Number(PORT), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
